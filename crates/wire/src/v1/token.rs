//! Tokens: `GET` and `POST tokens`, `DELETE tokens/{id}`.

use std::fmt;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::units;
use serde::{Deserialize, Serialize};

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Role {
    /// Everything.
    Admin,
    /// Everything but tokens, backups and the workers' registration.
    Operator,
    /// Looking.
    Viewer,
    /// What a router needs.
    Router,
    /// What an agent needs, for its own worker only.
    Agent,
}

impl Role {
    pub const ALL: [Role; 5] = [Role::Admin, Role::Operator, Role::Viewer, Role::Router, Role::Agent];

    pub const fn code(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Operator => "operator",
            Role::Viewer => "viewer",
            Role::Router => "router",
            Role::Agent => "agent",
        }
    }

    pub fn from_code(code: &str) -> Option<Role> {
        Self::ALL.into_iter().find(|role| role.code() == code)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A new token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateToken {
    /// Whose it is, as the journal names them.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The only worker that it may touch; required for an agent, refused for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// When it ends by itself; unless given, never.
    #[serde(default, with = "units::optional_duration", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Span>))]
    pub expires_after: Option<Duration>,
}

/// A token without its secret, which nobody can read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Token {
    /// Its name in the API; tells nothing about the secret.
    pub id: String,
    /// Whose it is.
    pub name: String,
    /// What it may do: `admin`, `operator`, `viewer`, `router` or `agent`.
    #[cfg_attr(feature = "openapi", schema(value_type = Role))]
    pub role: String,
    /// The only worker that it may touch.
    pub worker_id: Option<String>,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub created_at: Timestamp,
    /// When it ends by itself.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub revoked_at: Option<Timestamp>,
}

/// A token that was just made: the only time that its secret is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedToken {
    /// What it is.
    pub token: Token,
    /// What to put into `DROWSE_TOKEN`.
    pub secret: String,
}

/// A link that signs a browser in, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoginLink {
    /// Where to go on this server, within the hour.
    pub path: String,
}

impl fmt::Debug for LoginLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginLink").finish_non_exhaustive()
    }
}

impl fmt::Debug for CreatedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedToken").field("token", &self.token).finish_non_exhaustive()
    }
}

/// All tokens, revoked ones too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<Token>,
}
