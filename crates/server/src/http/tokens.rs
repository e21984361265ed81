//! `tokens`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use drowse_store::Token as Stored;
use drowse_wire::v1::{CreateToken, CreatedToken, Token, TokenList};

use super::ApiState;
use super::extract::{Body, TokenId};
use super::failure::Answered;
use crate::auth::Principal;

/// Lists all tokens, without their secrets. The sessions of browsers are among them.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens",
    responses((status = 200, description = "All of them.", body = TokenList)))]
pub(super) async fn list(State(state): State<ApiState>) -> Answered<Json<TokenList>> {
    let tokens = state.fleet().tokens().await?;
    Ok(Json(TokenList { tokens: tokens.into_iter().map(shown).collect() }))
}

fn shown(token: Stored) -> Token {
    Token {
        id: token.id,
        name: token.name,
        role: token.role,
        worker_id: token.worker.map(|worker| worker.to_string()),
        created_at: token.created_at,
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
    }
}

/// Makes a token. Its secret is shown now and never again.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", request_body = CreateToken,
    responses((status = 201, description = "The token and its secret.", body = CreatedToken)))]
pub(super) async fn create(
    State(state): State<ApiState>,
    who: Principal,
    Body(new): Body<CreateToken>,
) -> Answered<(StatusCode, Json<CreatedToken>)> {
    let (token, secret) = state.fleet().create_token(&state.0.chance, new, &who.name).await?;
    let created = CreatedToken { token: shown(token), secret: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, Json(created)))
}

/// Takes a token back, from the next request on.
#[utoipa::path(delete, path = "/api/v1/tokens/{token_id}", tag = "tokens",
    responses((status = 200, description = "The token, which opens nothing any more.", body = Token)))]
pub(super) async fn revoke(
    State(state): State<ApiState>,
    who: Principal,
    TokenId(id): TokenId,
) -> Answered<Json<Token>> {
    Ok(Json(shown(state.fleet().revoke_token(&id, &who.name).await?)))
}
