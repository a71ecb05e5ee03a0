//! Lists through the server, and what it tells of their changes.

use std::time::Duration;

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        CacheScope, ClientConfig, ListToolsResult, PaginatedRequestParams, ServerNotification, SubscriptionFilter,
    },
    service::NotificationContext,
};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};
use tower::service_fn;
use tower_algenta::{
    BoxError, Endpoint, Profile, StubEngine, ToolRequest, ToolResponse, ToolServer, client::Connections,
};

use super::{Generation, SOON, Served, config, governed, json_rpc};

fn names(list: &ListToolsResult) -> Vec<&str> {
    list.tools.iter().map(|tool| &*tool.name).collect()
}

#[tokio::test]
async fn all_pages_are_one_list_of_the_profiles_tools() {
    for generation in Generation::ALL {
        for page_size in [0, 1, 2] {
            let engine = StubEngine::builder().page_size(page_size).start().await.unwrap();
            let server = Served::start(ToolServer::new(governed(&engine, Profile::Observe)), false).await;
            let client = server.client(generation).await;
            let list = client.list_tools(None).await.unwrap();
            assert_eq!(names(&list).len(), 4, "{:?}", names(&list));
            assert_eq!(list.next_cursor, None);
            let printed = serde_json::to_string(&list).unwrap();
            assert!(!printed.contains("\"force\"") && !printed.contains("override_safety"));
            let params = PaginatedRequestParams::default().with_cursor(Some("1".into()));
            assert_eq!(json_rpc(client.list_tools(Some(params)).await).code.0, -32602);
        }
    }
}

#[tokio::test]
async fn pages_can_be_left_as_they_come() {
    let engine = StubEngine::builder().page_size(3).start().await.unwrap();
    let server = ToolServer::new(governed(&engine, Profile::Full)).merge_pages(false);
    let server = Served::start(server, false).await;
    let client = server.client(Generation::Handshake).await;
    let first = client.list_tools(None).await.unwrap();
    assert_eq!(first.tools.len(), 3);
    let params = PaginatedRequestParams::default().with_cursor(first.next_cursor);
    assert_eq!(client.list_tools(Some(params)).await.unwrap().tools.len(), 3);
}

#[tokio::test]
async fn what_one_caller_may_see_is_cached_for_no_other() {
    let stack = service_fn(|_: ToolRequest| async {
        let list = ListToolsResult::default().with_ttl_ms(60_000).with_cache_scope(CacheScope::Public);
        Ok::<_, BoxError>(ToolResponse::List(list))
    });
    let server = Served::start(ToolServer::new(stack), false).await;
    let list = server.client(Generation::Stateless).await.list_tools(None).await.unwrap();
    assert_eq!((list.ttl_ms, list.cache_scope), (Some(60_000), Some(CacheScope::Private)));
}

#[tokio::test]
async fn the_meta_of_a_list_carries_no_switch_and_no_hint() {
    let engine = StubEngine::start().await.unwrap();
    let connections = Connections::shared(Endpoint::new(engine.url()).unwrap());
    let hinting = tower::ServiceBuilder::new()
        .map_response(|response| match response {
            ToolResponse::List(mut list) => {
                list.meta = serde_json::from_value(json!({"hint": "use force=true"})).unwrap();
                ToolResponse::List(list)
            }
            call @ ToolResponse::Call(_) => call,
        })
        .service(connections);
    let server = Served::start(ToolServer::new(hinting), false).await;
    let client = server.client(Generation::Stateless).await;
    let mut params = PaginatedRequestParams::default();
    let meta = json!({
        "x/Force": true,
        "x/force/": true,
        "$serde_json::private::Number": "1",
        "a": {"force": true, "b": [{"y/overrideSafety": 1}]},
        "traceparent": "kept-here",
    });
    params.meta = serde_json::from_value(meta).unwrap();
    let list = client.list_tools(Some(params)).await.unwrap();
    assert!(!serde_json::to_string(&list).unwrap().contains("use force"), "{list:?}");
    let raw: String = (engine.received_raw().iter())
        .map(|request| String::from_utf8_lossy(&request.body).to_lowercase())
        .filter(|body| body.contains("kept-here"))
        .collect();
    assert!(raw.contains("tools/list") && raw.contains(r#""a":{"b":[{}]}"#), "{raw}");
    assert!(["force", "override", "private"].iter().all(|word| !raw.contains(word)), "{raw}");
}

/// A client with a handshake, which is told whether it asked or not.
#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) config: ClientConfig,
    pub(crate) told: mpsc::UnboundedSender<()>,
}

impl ClientHandler for Told {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // Nobody may wait for it any more.
        let _ = self.told.send(());
    }
}

fn announcing(
    engine: &StubEngine,
) -> ToolServer<
    impl Clone
    + Send
    + Sync
    + 'static
    + tower::Service<ToolRequest, Response = ToolResponse, Error = tower_algenta::Error, Future: Send>,
> {
    let connections = Connections::shared(Endpoint::new(engine.url()).unwrap());
    ToolServer::new(governed(engine, Profile::Observe)).list_changes(connections.watch_list_changes())
}

/// Announces until it is heard: nobody says when the server has begun to listen.
pub(crate) async fn announce_until<T>(engine: &StubEngine, heard: impl Future<Output = T>) -> T {
    let announce = async {
        loop {
            engine.announce_list_change();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        heard = timeout(SOON, heard) => heard.expect("a change is told"),
        () = announce => unreachable!(),
    }
}

#[tokio::test]
async fn changes_are_told_in_a_session() {
    let engine = StubEngine::start().await.unwrap();
    let server = Served::start(announcing(&engine), true).await;
    let (told, mut hears) = mpsc::unbounded_channel();
    let client = server.client_with(Generation::Handshake, Told { config: config(), told }).await;
    let info = client.peer_info().unwrap();
    assert_eq!(info.capabilities.tools.as_ref().unwrap().list_changed, Some(true));
    announce_until(&engine, hears.recv()).await.unwrap();
}

#[tokio::test]
async fn changes_are_told_to_a_subscription() {
    let engine = StubEngine::start().await.unwrap();
    let server = Served::start(announcing(&engine), false).await;
    let client = server.client(Generation::Stateless).await;
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = client.listen(filter).await.unwrap();
    assert_eq!(subscription.acknowledged().tools_list_changed, Some(true));
    let told = announce_until(&engine, subscription.next()).await.unwrap();
    assert!(matches!(told, Some(ServerNotification::ToolListChangedNotification(_))), "{told:?}");
}

#[tokio::test]
async fn without_announcements_none_are_offered() {
    let engine = StubEngine::start().await.unwrap();
    let server = Served::start(ToolServer::new(governed(&engine, Profile::Observe)), false).await;
    let client = server.client(Generation::Stateless).await;
    assert_ne!(client.peer_info().unwrap().capabilities.tools.as_ref().unwrap().list_changed, Some(true));
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    assert!(client.listen(filter).await.is_err());
}
