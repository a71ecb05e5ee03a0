//! Waiting for the engine's word that its list of tools has changed.

use std::{fmt, sync::Arc, time::Duration};

use rmcp::{
    ClientHandler, RoleClient,
    model::{ClientConfig, ProgressNotificationParam, ProtocolVersion, ServerNotification, SubscriptionFilter},
    service::{NotificationContext, Subscription},
};
use tokio::sync::watch;

use super::{CallError, CallErrorKind, EngineClient, engine_client::Shared, progress::ProgressTable};
use crate::{Error, error::UnexpectedResponse};

/// How soon the end of a session is noticed.
const LOOK: Duration = Duration::from_secs(1);

/// What handles the engine's notifications on the connections that this crate opens. It answers no request.
pub(super) struct Notified {
    config: ClientConfig,
    changes: watch::Sender<u64>,
    progress: Arc<ProgressTable>,
}

impl Notified {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self { config, changes: watch::Sender::new(0), progress: Arc::default() }
    }

    pub(super) const fn progress(&self) -> &Arc<ProgressTable> {
        &self.progress
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl ClientHandler for Notified {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.report(progress);
    }
}

/// The engine's announcements that its list of tools has changed; [`EngineClient::list_changes`] makes it.
///
/// It keeps the connection. Dropping it ends the subscription.
#[must_use = "changes are told to whoever waits for them"]
pub struct ListChanges {
    source: Source,
    shared: Arc<Shared>,
}

enum Source {
    /// The versions with a session, whose notifications come to everybody.
    Session(watch::Receiver<u64>),
    /// 2026-07-28, in which a client asks for what it wants to hear of.
    Subscription(Box<Subscription>),
}

impl ListChanges {
    /// Waits for the next change. Several may be told as one; a list after it has them all.
    ///
    /// # Errors
    ///
    /// [`Error::Upstream`] when the engine ends the subscription or the connection is lost. Make another one then, and
    /// list once more, since what changed in between is not told. A session over HTTP outlives its engine: there, the
    /// next request finds out.
    pub async fn changed(&mut self) -> Result<(), Error> {
        match &mut self.source {
            Source::Session(changes) => loop {
                match tokio::time::timeout(LOOK, changes.changed()).await {
                    Ok(Ok(())) => return Ok(()),
                    // Nothing reports the end of a session; whoever asks is told.
                    Err(_) if !self.shared.is_closed() => {}
                    Ok(Err(_)) | Err(_) => return Err(CallError::new(CallErrorKind::Lost).into()),
                }
            },
            Source::Subscription(subscription) => loop {
                match subscription.next().await {
                    Ok(Some(ServerNotification::ToolListChangedNotification(_))) => return Ok(()),
                    Ok(Some(_)) => {}
                    Ok(None) => return Err(CallError::new(CallErrorKind::Lost).into()),
                    Err(error) => return Err(self.shared.error(error, UnexpectedResponse::TO_LIST).await),
                }
            },
        }
    }
}

impl fmt::Debug for ListChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListChanges").finish_non_exhaustive()
    }
}

impl EngineClient {
    /// Asks to be told when the engine's list of tools changes.
    ///
    /// It hears of changes from now on, so list after it, not before. In protocol 2026-07-28 it is a request of its
    /// own (`subscriptions/listen`), which has the call timeout to be acknowledged.
    ///
    /// # Errors
    ///
    /// [`Error::Upstream`] with [`CallErrorKind::NoListChanges`] when the engine does not say that it tells, or when
    /// the client was made from a connection with a handler of its own, which hears them.
    pub async fn list_changes(&self) -> Result<ListChanges, Error> {
        let unavailable = CallError::no_list_changes;
        let shared = Arc::clone(self.shared());
        shared.check_open()?;
        let offered = self.server_info().and_then(|info| info.capabilities.tools.as_ref()?.list_changed);
        if offered != Some(true) {
            return Err(unavailable());
        }
        if self.protocol_version() != Some(ProtocolVersion::V_2026_07_28) {
            let changes = shared.changes().ok_or_else(unavailable)?;
            return Ok(ListChanges { source: Source::Session(changes), shared });
        }
        let limit = self.limit();
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match tokio::time::timeout(limit, shared.peer().listen(filter)).await {
            Ok(Ok(subscription)) if subscription.acknowledged().tools_list_changed == Some(true) => {
                Ok(ListChanges { source: Source::Subscription(Box::new(subscription)), shared })
            }
            Ok(Ok(_)) => Err(unavailable()),
            Ok(Err(error)) => Err(shared.error(error, UnexpectedResponse::TO_LIST).await),
            Err(_) => Err(CallError::new(CallErrorKind::TimedOut(limit)).into()),
        }
    }
}
