//! Tokens and login links, by the hash of their secret: whoever reads the database learns none.

use std::fmt;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;

use crate::error::StoreError;
use crate::row::worker_id;
use crate::sql::Row;
use crate::tx::{Tx, View};

/// What somebody may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its name for people and the API; tells nothing about the secret.
    pub id: String,
    /// Whose it is, as the journal names them.
    pub name: String,
    /// What they may do.
    pub role: String,
    /// The only worker that they may touch.
    pub worker: Option<WorkerId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    /// Whether it opens anything at `now`. At the very instant of its end it is over.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}

/// A link that signs somebody in, once.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginLink {
    /// Of the secret in it.
    pub hash: Vec<u8>,
    /// Who is signed in.
    pub name: String,
    /// What they may do.
    pub role: String,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

impl fmt::Debug for LoginLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginLink")
            .field("name", &self.name)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Tx<'_> {
    /// Stores a token. [`StoreError::Constraint`] if its id or its secret is taken.
    pub fn add_token(&self, token: &Token, hash: &[u8]) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO token (id, hash, name, role, worker_id, created_at, expires_at, revoked_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                (&token.id).into(),
                hash.into(),
                (&token.name).into(),
                (&token.role).into(),
                token.worker.as_ref().map(WorkerId::as_str).into(),
                token.created_at.into(),
                token.expires_at.into(),
                token.revoked_at.into(),
            ],
        )?;
        Ok(())
    }

    /// Takes a token back; false if there is none or it was taken back before.
    pub fn revoke_token(&self, id: &str, at: Timestamp) -> Result<bool, StoreError> {
        let revoked = self.execute(
            "UPDATE token SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL",
            &[at.into(), id.into()],
        )?;
        Ok(revoked == 1)
    }

    /// Deletes tokens and links that ended before `before`; how many.
    pub fn sweep_tokens(&self, before: Timestamp) -> Result<u64, StoreError> {
        let tokens =
            self.execute("DELETE FROM token WHERE expires_at < $1 OR revoked_at < $1", &[before.into()])?;
        let links = self.execute("DELETE FROM login_link WHERE expires_at < $1", &[before.into()])?;
        Ok(tokens + links)
    }

    pub fn add_login_link(&self, link: &LoginLink) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO login_link (hash, name, role, expires_at) VALUES ($1, $2, $3, $4)",
            &[link.hash.as_slice().into(), (&link.name).into(), (&link.role).into(), link.expires_at.into()],
        )?;
        Ok(())
    }

    /// Uses a link up. Of two that try at once, one gets it: the second deletes nothing.
    pub fn take_login_link(&self, hash: &[u8], now: Timestamp) -> Result<Option<LoginLink>, StoreError> {
        let link = self.query_one(
            "DELETE FROM login_link WHERE hash = $1 RETURNING name, role, expires_at",
            &[hash.into()],
            |row| {
                Ok(LoginLink {
                    hash: hash.to_owned(),
                    name: row.text(0)?.to_owned(),
                    role: row.text(1)?.to_owned(),
                    expires_at: row.at(2)?,
                })
            },
        )?;
        Ok(link.filter(|link| link.expires_at > now))
    }
}

impl View<'_> {
    /// The token of a secret, live or not.
    pub fn token_by_hash(&self, hash: &[u8]) -> Result<Option<Token>, StoreError> {
        self.query_one(
            "SELECT id, name, role, worker_id, created_at, expires_at, revoked_at FROM token WHERE hash = $1",
            &[hash.into()],
            token,
        )
    }

    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.query(
            "SELECT id, name, role, worker_id, created_at, expires_at, revoked_at FROM token ORDER BY id",
            &[],
            token,
        )
    }
}

fn token(row: &Row<'_>) -> Result<Token, StoreError> {
    Ok(Token {
        id: row.text(0)?.to_owned(),
        name: row.text(1)?.to_owned(),
        role: row.text(2)?.to_owned(),
        worker: row.opt_text(3)?.map(worker_id).transpose()?,
        created_at: row.at(4)?,
        expires_at: row.opt_at(5)?,
        revoked_at: row.opt_at(6)?,
    })
}
