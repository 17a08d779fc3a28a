//! rmcp's client, with what it is told kept for the test.

use std::collections::BTreeSet;
use std::time::Duration;

use rmcp::model::{
    ClientConfig, ErrorCode, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    Resource, ResourceContents, ResourceUpdatedNotificationParam, ServerNotification,
    SubscribeRequestParams, SubscriptionFilter,
};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, NotificationContext, RunningService, ServiceError,
    Subscription,
};
use rmcp::{ClientHandler, ClientServiceExt, RoleClient};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::FilesServer;

pub const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Era {
    Legacy,
    Modern,
}

pub const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
pub enum Push {
    ListChanged,
    Updated(String),
}

pub fn updated(uri: &str) -> Push {
    Push::Updated(uri.to_owned())
}

pub struct Recorder(UnboundedSender<Push>);

impl ClientHandler for Recorder {
    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(Push::ListChanged);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(Push::Updated(params.uri));
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }
}

pub struct Client {
    pub era: Era,
    pub running: RunningService<RoleClient, Recorder>,
    pushed: UnboundedReceiver<Push>,
    stream: Option<Subscription>,
    expected: BTreeSet<Push>,
}

impl Client {
    pub async fn new(server: &FilesServer, era: Era) -> Self {
        let (sender, pushed) = unbounded_channel();
        let mode = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let running = Recorder(sender).serve_with_lifecycle(server.connect(), mode).await.unwrap();
        running.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        Self { era, running, pushed, stream: None, expected: BTreeSet::new() }
    }

    pub async fn page(
        &self,
        cursor: Option<String>,
    ) -> Result<(Vec<Resource>, Option<String>), ServiceError> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        self.running
            .list_resources(Some(params))
            .await
            .map(|page| (page.resources, page.next_cursor))
    }

    pub async fn list(&self) -> Result<Vec<Resource>, ServiceError> {
        let (mut all, mut cursor) = self.page(None).await?;
        while let Some(next) = cursor {
            let (more, after) = self.page(Some(next)).await?;
            all.extend(more);
            cursor = after;
        }
        Ok(all)
    }

    pub async fn uris(&self) -> Vec<String> {
        self.list().await.unwrap().into_iter().map(|resource| resource.uri).collect()
    }

    pub async fn read(&self, uri: &str) -> Result<ResourceContents, ServiceError> {
        let mut read = self.running.read_resource(ReadResourceRequestParams::new(uri)).await?;
        assert_eq!(read.contents.len(), 1);
        Ok(read.contents.remove(0))
    }

    pub async fn text(&self, uri: &str) -> String {
        match self.read(uri).await.unwrap() {
            ResourceContents::TextResourceContents { text, uri: of, .. } => {
                assert_eq!(of, uri);
                text
            }
            other => panic!("{other:?}"),
        }
    }

    pub async fn error(&self, uri: &str) -> (ErrorCode, String) {
        match self.read(uri).await {
            Err(ServiceError::McpError(error)) => (error.code, error.message.into_owned()),
            other => panic!("{uri}: {other:?}"),
        }
    }

    /// The era's code for what doesn't exist.
    pub fn not_found(&self) -> ErrorCode {
        match self.era {
            Era::Legacy => ErrorCode(-32002),
            Era::Modern => ErrorCode(-32602),
        }
    }

    #[allow(deprecated)]
    pub async fn follow(&mut self, uris: &[&str]) {
        match self.era {
            Era::Legacy => {
                for uri in uris {
                    self.running.subscribe(SubscribeRequestParams::new(*uri)).await.unwrap();
                }
            }
            Era::Modern => {
                let filter = SubscriptionFilter::builder()
                    .resources_list_changed()
                    .resource_subscriptions(uris.iter().copied())
                    .build();
                self.stream = Some(self.running.listen(filter).await.unwrap());
            }
        }
    }

    pub async fn next(&mut self) -> Push {
        let next = async {
            match &mut self.stream {
                None => self.pushed.recv().await.unwrap(),
                Some(stream) => match stream.next().await.unwrap().unwrap() {
                    ServerNotification::ResourceListChangedNotification(_) => Push::ListChanged,
                    ServerNotification::ResourceUpdatedNotification(n) => {
                        Push::Updated(n.params.uri)
                    }
                    other => panic!("{other:?}"),
                },
            }
        };
        timeout(DEADLINE, next).await.expect("a notification in time")
    }

    /// Takes notifications until this one came. One that came before may come again, since a write is
    /// several events; any other may not.
    pub async fn expect(&mut self, wanted: Push) {
        self.expected.insert(wanted.clone());
        loop {
            let push = self.next().await;
            assert!(self.expected.contains(&push), "{push:?} wasn't expected, but {wanted:?}");
            if push == wanted {
                return;
            }
        }
    }

    /// Takes notifications until this one came.
    pub async fn wait_for(&mut self, push: Push) {
        while self.next().await != push {}
    }
}
