//! The routes by which people look around: what the console is made of, and open to everybody.

use axum::Json;
use axum::extract::{Extension, State};
use http::Uri;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Errors, Faces, NotThere, ReadErrors};
use crate::serve::api::{
    CompleteRequest, CompleteResponse, ConsoleResponse, ExpandRequest, ExpandResponse,
    ResourceQuery, ResourceResponse, ScopesResponse, SeriesResponse, TokenRequest, TokenResponse,
    TreeQuery, TreeResponse, UnfollowQuery, WithheldQuery, WithheldResponse,
};
use crate::serve::body::{self, Body};
use crate::serve::error::ApiError;
use crate::serve::scope::Caller;

pub(super) fn routes() -> OpenApiRouter<Faces> {
    OpenApiRouter::new()
        .routes(routes!(resource))
        .routes(routes!(tree))
        .routes(routes!(expand, unfollow))
        .routes(routes!(complete))
        .routes(routes!(withheld))
        .routes(routes!(scopes))
        .routes(routes!(token))
        .routes(routes!(series))
        .routes(routes!(console))
}

/// Everything that the index holds of a resource: its chunks, why it was skipped, its history.
#[utoipa::path(get, path = "/v1/resource", params(ResourceQuery),
    responses((status = 200, body = ResourceResponse), Errors, NotThere))]
async fn resource(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<ResourceResponse>, ApiError> {
    let query = body::parameters(&uri)?;
    faces.app.blocking(move |app| app.resource(&caller, &query)).await.map(Json)
}

/// The tree of a server's URIs, a level and a page at a time.
#[utoipa::path(get, path = "/v1/tree", params(TreeQuery),
    responses((status = 200, body = TreeResponse), Errors))]
async fn tree(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<TreeResponse>, ApiError> {
    let query = body::parameters(&uri)?;
    faces.app.blocking(move |app| app.tree(&caller, &query)).await.map(Json)
}

/// Fills a URI template in; with `follow` its resource is indexed from now on.
#[utoipa::path(post, path = "/v1/templates", request_body = ExpandRequest,
    responses((status = 200, body = ExpandResponse), Errors, NotThere))]
async fn expand(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<ExpandRequest>,
) -> Result<Json<ExpandResponse>, ApiError> {
    faces.app.blocking(move |app| app.expand(&caller, &request)).await.map(Json)
}

/// Follows an expansion no longer that was chosen at run time.
#[utoipa::path(delete, path = "/v1/templates", params(UnfollowQuery),
    responses((status = 200, body = ExpandResponse), Errors, NotThere))]
async fn unfollow(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<ExpandResponse>, ApiError> {
    let query = body::parameters(&uri)?;
    faces.app.blocking(move |app| app.unfollow(&caller, &query)).await.map(Json)
}

/// Asks a server what a template's variable can be.
#[utoipa::path(post, path = "/v1/complete", request_body = CompleteRequest,
    responses((status = 200, body = CompleteResponse), Errors, ReadErrors))]
async fn complete(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<CompleteRequest>,
) -> Result<Json<CompleteResponse>, ApiError> {
    faces.app.complete(&caller, &request).await.map(Json)
}

/// Lists a server's removals that wait for a second listing, or for a sync with `confirm`.
#[utoipa::path(get, path = "/v1/withheld", params(WithheldQuery),
    responses((status = 200, body = WithheldResponse), Errors))]
async fn withheld(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<WithheldResponse>, ApiError> {
    faces.app.withheld(&caller, &body::parameters(&uri)?).map(Json)
}

/// Lists the scopes of the config.
#[utoipa::path(get, path = "/v1/scopes",
    responses((status = 200, body = ScopesResponse), Errors))]
async fn scopes(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ScopesResponse>, ApiError> {
    faces.app.scope_items(&caller).map(Json)
}

/// Makes a token for a scope, with the line for the config. Nothing is kept of it.
#[utoipa::path(post, path = "/v1/tokens", request_body = TokenRequest,
    responses((status = 200, body = TokenResponse), Errors))]
async fn token(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<TokenRequest>,
) -> Result<Json<TokenResponse>, ApiError> {
    faces.app.new_token(&caller, &request).map(Json)
}

/// How things went in the last two hours, minute by minute.
#[utoipa::path(get, path = "/v1/series",
    responses((status = 200, body = SeriesResponse), Errors))]
async fn series(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<SeriesResponse>, ApiError> {
    faces.app.series(&caller).map(Json)
}

/// A link that opens the console and signs its owner in, once.
#[utoipa::path(post, path = "/v1/console",
    responses((status = 200, body = ConsoleResponse), Errors, NotThere))]
async fn console(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ConsoleResponse>, ApiError> {
    faces.app.console_link(&caller).map(Json)
}
