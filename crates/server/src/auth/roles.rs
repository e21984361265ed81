//! Sets of roles.

use drowse_wire::v1::Role;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// Whoever is in charge.
    pub const OWN: Roles = Roles(1 << Role::Admin as u8);
    /// Those who act, and those in charge.
    pub const ACT: Roles = Roles::OWN.and(Role::Operator);
    /// Those who look, and all above them.
    pub const LOOK: Roles = Roles::ACT.and(Role::Viewer);

    #[must_use]
    pub const fn and(self, role: Role) -> Roles {
        Roles(self.0 | (1 << role as u8))
    }

    pub const fn contains(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// Those in the set, the mightiest first.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.contains(*role))
    }
}
