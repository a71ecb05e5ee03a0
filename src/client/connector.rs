//! Connecting as a service.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use tower_service::Service;

use super::{Endpoint, EngineClient};
use crate::Error;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Connects to the [`Endpoint`] that it is called with: a tower `MakeService`, for what makes its own connections.
///
/// ```
/// # #[cfg(feature = "stub")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use tower::ServiceExt as _;
/// use tower_algenta::{Endpoint, ToolRequest, client::Connector, stub::StubEngine};
///
/// let engine = StubEngine::start().await.unwrap();
///
/// let client = Connector::new().oneshot(Endpoint::new(engine.url())?).await?;
/// client.oneshot(ToolRequest::list()).await?;
/// # Ok::<_, tower_algenta::BoxError>(()) }).unwrap();
/// ```
///
/// With the feature `child-process` it also starts a `ChildProcess`. An engine at the end of
/// another transport has no target that can be cloned: there, `service_fn` around [`EngineClient::serve`] is the maker.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Connector;

impl Connector {
    /// Creates the service.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Service<Endpoint> for Connector {
    type Response = EngineClient;
    type Error = Error;
    type Future = ConnectFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, endpoint: Endpoint) -> ConnectFuture {
        ConnectFuture { inner: Box::pin(EngineClient::connect(endpoint)) }
    }
}

#[cfg(feature = "child-process")]
impl Service<super::ChildProcess> for Connector {
    type Response = EngineClient;
    type Error = Error;
    type Future = ConnectFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, child: super::ChildProcess) -> ConnectFuture {
        ConnectFuture { inner: Box::pin(EngineClient::spawn(child)) }
    }
}

/// Response future of [`Connector`]. Its error is [`Error::NotSent`] with a [`ConnectError`](super::ConnectError).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ConnectFuture {
    inner: BoxFuture<Result<EngineClient, Error>>,
}

impl Future for ConnectFuture {
    type Output = Result<EngineClient, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.as_mut().poll(cx)
    }
}

impl fmt::Debug for ConnectFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectFuture").finish_non_exhaustive()
    }
}
