//! The face through the real router, with rmcp's own client in both eras.

use std::sync::Arc;

use axum::body::Body;
use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, ClientConfig, CompleteRequestParams, ProtocolVersion,
    ReadResourceRequestParams, Reference, ResourceUpdatedNotificationParam, ServerNotification,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::index::Change;
use crate::serve::api::TraceQuery;
use crate::serve::fake::entry;
use crate::serve::http::router;
use crate::serve::tests::app;

type Client = RunningService<RoleClient, ClientConfig>;

/// The client's end of a connection within this process.
fn connect(app: Arc<App>, bound: Option<&str>) -> tokio::io::DuplexStream {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let caller = Caller { bound: bound.map(Into::into), client: "test".into() };
    let hub = Arc::new(Hub::new(app, caller));
    let place = Place::take(&Arc::default()).unwrap();
    tokio::spawn(async move {
        if let Ok(running) = Connection::new(hub, place).serve(theirs).await {
            let _ = running.waiting().await;
        }
    });
    ours
}

/// A client of one scope in each era, over a connection within this process.
async fn clients(app: &Arc<App>, bound: Option<&str>) -> [Client; 2] {
    let legacy = ClientConfig::default().serve(connect(app.clone(), bound)).await.unwrap();
    let mode =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let modern =
        serve_client_with_lifecycle(ClientConfig::default(), connect(app.clone(), bound), mode)
            .await
            .unwrap();
    [legacy, modern]
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> (bool, Value) {
    let Value::Object(arguments) = arguments else { panic!() };
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = client.call_tool(request).await.unwrap();
    let result = serde_json::to_value(&result).unwrap();
    let contents = result["content"].as_array().unwrap();
    assert_eq!(contents.len(), 1, "exactly one content");
    let text = contents[0]["text"].as_str().unwrap();
    let is_error = result["isError"] == true;
    (is_error, serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}

async fn read(client: &Client, uri: &str) -> Result<Value, rmcp::ServiceError> {
    let read = client.read_resource(ReadResourceRequestParams::new(uri)).await?;
    Ok(serde_json::to_value(&read).unwrap()["contents"].clone())
}

#[tokio::test]
async fn resources_go_by_their_own_uri_where_one_server_has_it() {
    let app = app();
    for client in clients(&app, None).await {
        let uris: Vec<_> =
            client.list_all_resources().await.unwrap().into_iter().map(|r| r.uri).collect();
        assert_eq!(
            uris,
            [
                "handbook:///logo.png",
                "handbook:///refunds.md",
                "handbook:///退款.md",
                "resdex://handbook/shared%3A%2F%2Fnote",
                "resdex://wiki/shared%3A%2F%2Fnote",
                "wiki://pages/hr/pay",
            ]
        );
        let contents = read(&client, "handbook:///退款.md").await.unwrap();
        assert_eq!(contents[0]["text"], "# 退款\n退款需要十四天。\n");
        assert_eq!(contents[0]["uri"], "handbook:///退款.md");
        let wrapped = "resdex://wiki/shared%3A%2F%2Fnote";
        let contents = read(&client, wrapped).await.unwrap();
        assert_eq!((&contents[0]["text"], &contents[0]["uri"]), (&json!("one\n"), &json!(wrapped)));
        let encoded = read(&client, "handbook:///%E9%80%80%E6%AC%BE.md").await.unwrap();
        assert_eq!(encoded[0]["uri"], "handbook:///%E9%80%80%E6%AC%BE.md");
        let ambiguous = read(&client, "shared://note").await.unwrap_err().to_string();
        assert!(ambiguous.contains(wrapped), "{ambiguous}");
        let missing = read(&client, "hanbook:///refunds.md").await.unwrap_err().to_string();
        assert!(missing.contains("handbook:///refunds.md"), "{missing}");

        let templates = client.list_all_resource_templates().await.unwrap();
        let templates: Vec<_> = templates.iter().map(|t| &*t.uri_template).collect();
        assert_eq!(templates, ["{+uri}", "handbook://{+path}", "wiki://{+path}"]);
        let argument = ArgumentInfo::new("uri", "handbook:///r");
        let asked = CompleteRequestParams::new(Reference::for_resource("{+uri}"), argument);
        let completion = client.complete(asked).await.unwrap().completion;
        assert_eq!(completion.values, ["handbook:///refunds.md"]);
    }
}

#[tokio::test]
async fn tools_have_the_shape_that_connectors_know() {
    let (app, state) = (app(), tempfile::tempdir().unwrap());
    app.keep_in(state.path()).unwrap();
    for client in clients(&app, None).await {
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["search", "fetch", "list_servers"]);
        let (_, found) = call(&client, "search", json!({"query": "refund"})).await;
        let first = &found["results"][0];
        assert_eq!(first["id"], "handbook:///refunds.md");
        assert_eq!((&first["title"], &first["url"]), (&json!("Refunds"), &first["id"]));
        // Alone it has the room of all: whole.
        let text = first["text"].as_str().unwrap();
        assert!(text.contains("A refund takes 14 days."), "{text}");
        let (_, shared) = call(&client, "search", json!({"query": "two"})).await;
        assert_eq!(shared["results"][0]["id"], "resdex://handbook/shared%3A%2F%2Fnote");
        let trace = app.traced(&Caller::owner("test"), &TraceQuery::default()).unwrap().entries;
        assert!(trace[0].client.starts_with("rmcp "), "{:?}", trace[0].client);
        let (_, none) = call(&client, "search", json!({"query": "zebra"})).await;
        assert_eq!(none, json!({"results": []}));

        let (_, fetched) = call(&client, "fetch", json!({"id": first["id"]})).await;
        assert_eq!(fetched["text"], "# Refunds\nA refund takes 14 days.\n\nAsk billing.\n");
        assert_eq!((&fetched["title"], &fetched["id"]), (&json!("Refunds"), &first["id"]));
        let cut = json!({"id": first["id"], "max_tokens": "5"});
        let (_, cut) = call(&client, "fetch", cut).await;
        assert_eq!(cut["text"], "# Refunds\n");
        assert!(cut["metadata"]["next"].as_str().unwrap().contains("lines=2-"));
        let (_, servers) = call(&client, "list_servers", json!({})).await;
        assert_eq!(servers["servers"].as_array().unwrap().len(), 2);
        for (tool, arguments, said) in [
            ("search", json!({}), "query: is missing"),
            ("search", json!({"query": 5}), "query: a string"),
            ("fetch", json!({"id": "x://y"}), "no server has x://y"),
            ("fetch", json!({"id": "shared://note"}), "resdex://wiki/"),
            ("fetch", json!({"id": first["id"], "max_tokens": 0}), "max_tokens: "),
        ] {
            let (is_error, text) = call(&client, tool, arguments).await;
            assert!(is_error && text.as_str().unwrap().contains(said), "{tool}: {text}");
        }
    }
}

#[tokio::test]
async fn what_a_scope_does_not_show_is_not_there() {
    let app = app();
    for client in clients(&app, Some("bot")).await {
        let listed = client.list_all_resources().await.unwrap();
        assert!(listed.iter().all(|resource| resource.uri != "wiki://pages/hr/pay"));
        let (_, found) = call(&client, "search", json!({"query": "refund"})).await;
        assert_eq!(found["results"].as_array().unwrap().len(), 1);
        let hidden = read(&client, "wiki://pages/hr/pay").await.unwrap_err().to_string();
        let absent = read(&client, "wiki://pages/hr/paz").await.unwrap_err().to_string();
        assert_eq!(hidden.replace("hr/pay", "hr/paz"), absent);
        let wrapped = read(&client, "resdex://wiki/wiki%3A%2F%2Fpages%2Fhr%2Fpay").await;
        assert!(wrapped.is_err());
        let (is_error, _) = call(&client, "fetch", json!({"id": "wiki://pages/hr/pay"})).await;
        assert!(is_error);
    }
}

#[tokio::test]
async fn streamable_http_answers_on_the_router() {
    let service = router(app(), CancellationToken::new());
    let post = |uri: &str, body: Value| {
        let request = http::Request::post(uri)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        service.clone().oneshot(request.body(Body::from(body.to_string())).unwrap())
    };
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    });
    let answer = post("/mcp", initialize.clone()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().contains_key("mcp-session-id"));
    let session = answer.headers()["mcp-session-id"].clone();
    let unknown = post("/mcp?scope=nobody", initialize).await.unwrap();
    assert_eq!(unknown.status(), StatusCode::BAD_REQUEST);
    // A session of all that there is can't be entered from within a scope.
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/list", "params": {}});
    let request = http::Request::post("/mcp?scope=bot")
        .header("host", "localhost")
        .header("mcp-session-id", session)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let request = request.body(Body::from(list.to_string())).unwrap();
    assert_eq!(service.oneshot(request).await.unwrap().status(), StatusCode::NOT_FOUND);
}

/// What a client is pushed, for the legacy era.
struct Recorder(tokio::sync::mpsc::UnboundedSender<String>);

impl rmcp::ClientHandler for Recorder {
    async fn on_resource_list_changed(&self, _: rmcp::service::NotificationContext<RoleClient>) {
        let _ = self.0.send("list".into());
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: rmcp::service::NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(params.uri);
    }
}

const UPDATED: &str = "handbook:///refunds.md";

fn change(app: &App) {
    let new = entry("handbook", "handbook:///new.md", "New", "new\n");
    app.store.apply(vec![Change::Replace(Box::new(new))]).unwrap();
    for uri in ["handbook:///new.md", UPDATED, "handbook:///退款.md"] {
        let (server, uri) = ("handbook".into(), uri.into());
        app.control.publish(crate::sync::control::Event::Indexed { server, uri });
    }
}

#[tokio::test]
#[allow(deprecated)]
async fn updates_are_pushed_to_a_legacy_client() {
    let app = app();
    let (sender, mut pushed) = tokio::sync::mpsc::unbounded_channel();
    let client = Recorder(sender).serve(connect(app.clone(), None)).await.unwrap();
    client.subscribe(SubscribeRequestParams::new(UPDATED)).await.unwrap();
    let missing = client.subscribe(SubscribeRequestParams::new("x://y")).await;
    assert!(missing.is_err());
    while app.control.receivers() == 0 {
        tokio::task::yield_now().await;
    }
    // What follows compares with the list as it was, so that must have been looked at.
    client.list_all_resources().await.unwrap();
    change(&app);
    assert_eq!(pushed.recv().await.unwrap(), UPDATED);
    assert_eq!(pushed.recv().await.unwrap(), "list");
    client.unsubscribe(UnsubscribeRequestParams::new(UPDATED)).await.unwrap();
}

#[tokio::test]
async fn updates_are_pushed_to_a_modern_client() {
    let app = app();
    let mode =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client =
        serve_client_with_lifecycle(ClientConfig::default(), connect(app.clone(), None), mode);
    let client = client.await.unwrap();
    let filter = SubscriptionFilter::builder()
        .resources_list_changed()
        .resource_subscriptions([UPDATED, "x://y"])
        .build();
    let mut stream = client.listen(filter).await.unwrap();
    while app.control.receivers() == 0 {
        tokio::task::yield_now().await;
    }
    client.list_all_resources().await.unwrap();
    change(&app);
    let mut seen = vec![];
    for _ in 0..2 {
        seen.push(match stream.next().await.unwrap().unwrap() {
            ServerNotification::ResourceListChangedNotification(_) => "list".to_owned(),
            ServerNotification::ResourceUpdatedNotification(updated) => updated.params.uri,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, [UPDATED, "list"]);
}
