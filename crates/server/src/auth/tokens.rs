//! Tokens, sessions and login links in the store.

use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_store::{Lane, LoginLink, NewEvent, Token, Tx};
use drowse_wire::v1::{CreateToken, Role};
use serde_json::json;

use super::{Chance, Principal, Secret};
use crate::fleet::{ControlError, Fleet};

/// How long a link that nobody has used signs somebody in.
const LINK_FOR: Duration = Duration::from_hours(1);

/// How long a browser stays signed in.
const SESSION_FOR: Duration = Duration::from_hours(7 * 24);

/// The longest name, in bytes: it is shown in a line of the journal.
const LONGEST_NAME: usize = 128;

impl Fleet {
    /// Whom a secret belongs to, if it opens anything now.
    pub(crate) async fn principal(&self, secret: &Secret) -> Result<Option<Principal>, ControlError> {
        let (hash, clock) = (secret.hash(), self.0.clock.clone());
        let token = self.0.db.read(move |view| Ok::<_, ControlError>(view.token_by_hash(&hash)?)).await?;
        Ok(token.filter(|token| token.is_live(clock.now())).and_then(|token| {
            // A role that a newer program knows and this one does not opens nothing.
            let role = Role::from_code(&token.role)?;
            Some(Principal { token_id: token.id, name: token.name, role, worker: token.worker })
        }))
    }

    /// Makes a token. The secret is here and nowhere else.
    pub(crate) async fn create_token(
        &self,
        chance: &Chance,
        new: CreateToken,
        by: &str,
    ) -> Result<(Token, Secret), ControlError> {
        let worker = checked(&new)?;
        let now = self.0.clock.now();
        let token = Token {
            id: format!("tok_{}", chance.name::<8>()),
            name: new.name,
            role: new.role.code().to_owned(),
            worker,
            created_at: now,
            expires_at: new.expires_after.map(|after| now + after),
            revoked_at: None,
        };
        let secret = Secret::new(chance);
        let (stored, hash, by) = (token.clone(), secret.hash(), by.to_owned());
        self.write("token", move |tx| {
            if let Some(worker) = &stored.worker {
                let is_there = tx.worker(worker)?.is_some_and(|record| record.removed_at.is_none());
                if !is_there {
                    return Err(ControlError::NotFound(worker.clone()));
                }
            }
            tx.add_token(&stored, &hash)?;
            let doc = json!({ "id": stored.id, "name": stored.name, "role": stored.role, "by": by });
            tx.append(NewEvent { at: now, worker: None, kind: "token.created".to_owned(), doc });
            Ok(())
        })
        .await?;
        Ok((token, secret))
    }

    /// All tokens; the sessions of browsers are among them.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "a method is not general over its lifetime"
    )]
    pub(crate) async fn tokens(&self) -> Result<Vec<Token>, ControlError> {
        self.0.db.read(|view| view.tokens()).await.map_err(ControlError::from)
    }

    /// Takes a token back. One that was taken back before stays as it is.
    pub(crate) async fn revoke_token(&self, id: &str, by: &str) -> Result<Token, ControlError> {
        let (id, by, now) = (id.to_owned(), by.to_owned(), self.0.clock.now());
        self.write("token", move |tx| {
            if tx.revoke_token(&id, now)? {
                let doc = json!({ "id": id, "by": by });
                tx.append(NewEvent { at: now, worker: None, kind: "token.revoked".to_owned(), doc });
            }
            let token = tx.tokens()?.into_iter().find(|token| token.id == id);
            token.ok_or_else(|| ControlError::NoSuch { what: format!("token {id}") })
        })
        .await
    }

    /// Makes a link that signs somebody in, once; the secret in it.
    pub(crate) async fn login_link(
        &self,
        chance: &Chance,
        name: &str,
        role: Role,
    ) -> Result<Secret, ControlError> {
        let secret = Secret::new(chance);
        let link = LoginLink {
            hash: secret.hash(),
            name: name.to_owned(),
            role: role.code().to_owned(),
            expires_at: self.0.clock.now() + LINK_FOR,
        };
        self.write("login_link", move |tx| Ok(tx.add_login_link(&link)?)).await?;
        Ok(secret)
    }

    /// Uses a link up and opens a session; its secret and how long it lasts. `None`: the link opens nothing.
    pub(crate) async fn sign_in(
        &self,
        chance: &Chance,
        link: &Secret,
    ) -> Result<Option<(Secret, Duration)>, ControlError> {
        let (now, hash, secret) = (self.0.clock.now(), link.hash(), Secret::new(chance));
        let (id, session) = (format!("ses_{}", chance.name::<8>()), secret.hash());
        let opened = self
            .write("sign_in", move |tx| {
                let Some(link) = tx.take_login_link(&hash, now)? else { return Ok(false) };
                let token = Token {
                    id: id.clone(),
                    name: link.name.clone(),
                    role: link.role,
                    worker: None,
                    created_at: now,
                    expires_at: Some(now + SESSION_FOR),
                    revoked_at: None,
                };
                tx.add_token(&token, &session)?;
                let doc = json!({ "id": id, "by": link.name });
                tx.append(NewEvent { at: now, worker: None, kind: "session.opened".to_owned(), doc });
                Ok(true)
            })
            .await?;
        Ok(opened.then_some((secret, SESSION_FOR)))
    }

    async fn write<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Tx<'_>) -> Result<T, ControlError> + Send + 'static,
    ) -> Result<T, ControlError> {
        let done = self.0.db.tx(name, Lane::Ordinary, work).await?;
        self.0.notices.journal_advanced();
        Ok(done)
    }
}

fn checked(new: &CreateToken) -> Result<Option<WorkerId>, ControlError> {
    if new.name.trim().is_empty() || new.name.len() > LONGEST_NAME {
        return Err(ControlError::invalid("name", "expected 1 to 128 bytes"));
    }
    if new.expires_after.is_some_and(|after| after.is_zero()) {
        return Err(ControlError::invalid("expires_after", "it would be over at once"));
    }
    match (new.role, &new.worker_id) {
        (Role::Agent, Some(id)) => {
            WorkerId::new(id).map(Some).map_err(|error| ControlError::invalid("worker_id", error.to_string()))
        }
        (Role::Agent, None) => Err(ControlError::invalid("worker_id", "an agent's token is for one worker")),
        (_, Some(_)) => Err(ControlError::invalid("worker_id", "only an agent's token is for one worker")),
        (_, None) => Ok(None),
    }
}
