//! The one row that holds for the whole fleet: the epoch of its policy, and the brake.
//!
//! Whoever commits a decision shares a lock on it until the end; whoever changes it takes the lock alone. So
//! an exemption that was granted before a pause commits is seen by it, and one that the pause did not see is
//! granted after the pause has become visible.

use drowse_core::brake::Brake;

use crate::error::StoreError;
use crate::row::{from_json, to_json};
use crate::tx::{Tx, View};

impl View<'_> {
    /// The policy's epoch and the brake.
    pub fn fleet(&self) -> Result<(u64, Brake), StoreError> {
        let found = self.query_one("SELECT policy_epoch, brake FROM fleet", &[], |row| {
            let brake = match row.opt_text(1)? {
                Some(text) => from_json(text, "brake", "the fleet")?,
                None => Brake::default(),
            };
            Ok((row.count(0)?, brake))
        })?;
        found.ok_or_else(|| StoreError::Corrupt("the row of the fleet is missing".into()))
    }

    /// Grows with every change of policy, exemption or schedule.
    pub fn policy_epoch(&self) -> Result<u64, StoreError> {
        self.fleet().map(|(epoch, _)| epoch)
    }

    pub fn brake(&self) -> Result<Brake, StoreError> {
        self.fleet().map(|(_, brake)| brake)
    }
}

impl Tx<'_> {
    /// Changes the brake from what it is now; `None`: it stays. Read under the lock, so that two replicas
    /// that see the same trouble engage it once.
    pub fn change_brake<T>(
        &self,
        change: impl FnOnce(&Brake) -> Option<(Brake, T)>,
    ) -> Result<Option<T>, StoreError> {
        self.lock_fleet()?;
        let Some((brake, what)) = change(&self.brake()?) else {
            return Ok(None);
        };
        self.execute("UPDATE fleet SET brake = $1", &[(&to_json(&brake)).into()])?;
        Ok(Some(what))
    }

    /// Says that policy, an exemption or a schedule has changed, and answers with the new epoch. What is stored
    /// through this crate says so by itself; a reloaded file does not.
    pub fn bump_policy_epoch(&self) -> Result<u64, StoreError> {
        self.lock_fleet()?;
        self.execute("UPDATE fleet SET policy_epoch = policy_epoch + 1", &[])?;
        self.policy_epoch()
    }
}
