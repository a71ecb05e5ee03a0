//! Where an engine is, and how to reach it.

use std::{env, error, ffi::OsString, fmt, time::Duration};

use reqwest::Url;

use super::{BearerToken, InvalidToken};

const BASE_URL: &str = "ALGENTA_BASE_URL";
const API_KEY: &str = "ALGENTA_API_KEY";
const DEFAULT_URL: &str = "http://localhost:8000/mcp";

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// rmcp's own is 16, and the 17th call waits without a word.
const MAX_CONCURRENT_REQUESTS: usize = 1024;

/// Where an engine is, with which token, and how long to wait for it.
///
/// ```
/// # use std::time::Duration;
/// # use tower_algenta::{Endpoint, client::BearerToken};
/// let endpoint = Endpoint::new("https://engine.example/mcp")?
///     .token(BearerToken::new("s3cr3t")?)
///     .call_timeout(Duration::from_secs(10));
/// assert_eq!(endpoint.url(), "https://engine.example/mcp");
/// # Ok::<_, tower_algenta::BoxError>(())
/// ```
///
/// The URL is taken as it is: its path is not completed, its query is sent. `http://host:8000` means the path `/`,
/// where an engine rarely is. A secret belongs in the token, not in the query: rmcp's own log events show the URL.
#[derive(Clone)]
#[must_use = "an endpoint does nothing until a client connects to it"]
pub struct Endpoint {
    url: Url,
    token: Option<BearerToken>,
    pub(super) connect_timeout: Duration,
    pub(super) call_timeout: Duration,
    pub(super) max_concurrent_requests: usize,
    pub(super) http_client: Option<reqwest::Client>,
}

impl Endpoint {
    /// The engine at `url`, without a token. Reads nothing from the environment: to name the URL and take the token from
    /// `ALGENTA_API_KEY`, use [`resolve`](Self::resolve) with `Some(url)`.
    ///
    /// # Errors
    ///
    /// When it is no URL, not `http` or `https`, or carries user-info.
    pub fn new(url: impl AsRef<str>) -> Result<Self, EndpointError> {
        Self::at(url.as_ref(), EndpointSource::Argument)
    }

    /// The engine that the environment names: as [`resolve`](Self::resolve) without an argument.
    pub fn from_env() -> Result<Self, EndpointError> {
        Self::resolve(None)
    }

    /// The engine at `url`, else at `ALGENTA_BASE_URL`, else at `http://localhost:8000/mcp`.
    ///
    /// The token is `ALGENTA_API_KEY`, until [`token`](Self::token) sets another. What is empty, or only white space,
    /// counts as unset.
    ///
    /// # Errors
    ///
    /// When the first that is set can't be used; the error names where it came from. The next one is not tried, since
    /// calls would go to an engine that nobody chose.
    pub fn resolve(url: Option<&str>) -> Result<Self, EndpointError> {
        Self::resolve_with(url, |variable| env::var_os(variable))
    }

    /// As [`resolve`](Self::resolve), with `lookup` in place of the process's environment.
    ///
    /// ```
    /// # use tower_algenta::Endpoint;
    /// let lookup = |name: &str| (name == "ALGENTA_BASE_URL").then(|| "http://engine/mcp".into());
    /// let endpoint = Endpoint::resolve_with(None, lookup)?;
    /// assert_eq!(endpoint.url(), "http://engine/mcp");
    /// # Ok::<_, tower_algenta::client::EndpointError>(())
    /// ```
    pub fn resolve_with(
        url: Option<&str>,
        mut lookup: impl FnMut(&str) -> Option<OsString>,
    ) -> Result<Self, EndpointError> {
        let mut variable = |name: &'static str| match lookup(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value).filter(|value| !is_blank(value))),
            Some(Err(_)) => {
                Err(EndpointError { kind: EndpointErrorKind::NotUnicode, source: EndpointSource::Variable(name) })
            }
        };
        let mut endpoint = match url.filter(|url| !is_blank(url)) {
            Some(url) => Self::at(url, EndpointSource::Argument)?,
            None => match variable(BASE_URL)? {
                Some(url) => Self::at(&url, EndpointSource::Variable(BASE_URL))?,
                None => Self::at(DEFAULT_URL, EndpointSource::Default)?,
            },
        };
        if let Some(token) = variable(API_KEY)? {
            let token = BearerToken::new(token).map_err(|reason| EndpointError {
                kind: EndpointErrorKind::InvalidToken(reason),
                source: EndpointSource::Variable(API_KEY),
            })?;
            endpoint.token = Some(token);
        }
        Ok(endpoint)
    }

    fn at(url: &str, source: EndpointSource) -> Result<Self, EndpointError> {
        let refuse = |kind| EndpointError { kind, source };
        let url = Url::parse(url.trim()).map_err(|_| refuse(EndpointErrorKind::NotAUrl))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(EndpointErrorKind::NotHttp));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse(EndpointErrorKind::UserInfo));
        }
        Ok(Self {
            url,
            token: None,
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            max_concurrent_requests: MAX_CONCURRENT_REQUESTS,
            http_client: None,
        })
    }

    /// Sets the token.
    pub fn token(mut self, token: BearerToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Sends no token, also if the environment has one.
    pub fn without_token(mut self) -> Self {
        self.token = None;
        self
    }

    /// Sets how long connecting may take, the handshake included. 15 seconds by default.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long each request may take. 60 seconds by default.
    ///
    /// A call that has run out of time is cancelled, but may have run.
    pub const fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Sets how many requests may be in flight at once; more wait their turn. 1024 by default, at least 1.
    pub const fn max_concurrent_requests(mut self, limit: usize) -> Self {
        self.max_concurrent_requests = limit;
        self
    }

    /// Sends through an HTTP client of your own: for a proxy, a private certificate authority, a client certificate.
    ///
    /// The default one keeps idle connections for 4 seconds and follows no redirect. Yours should neither follow
    /// redirects nor repeat requests, or a call may reach the engine twice.
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.http_client = Some(client);
        self
    }

    /// The URL, as requests use it.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Whether requests carry a token.
    pub const fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub(super) const fn bearer_token(&self) -> Option<&BearerToken> {
        self.token.as_ref()
    }

    /// The URL for messages: without the query, which may hold a secret.
    pub(super) fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }
}

impl fmt::Debug for Endpoint {
    /// Shows whether there is a token, not which.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.shown())
            .field("token", &self.token)
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .field("max_concurrent_requests", &self.max_concurrent_requests)
            .finish_non_exhaustive()
    }
}

fn is_blank(value: &str) -> bool {
    value.trim().is_empty()
}

/// An endpoint that can't be used. The message says where it came from and what to do, and repeats nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointError {
    kind: EndpointErrorKind,
    source: EndpointSource,
}

impl EndpointError {
    /// What is wrong with it.
    #[must_use]
    pub const fn kind(&self) -> &EndpointErrorKind {
        &self.kind
    }

    /// Where it came from.
    #[must_use]
    pub const fn came_from(&self) -> EndpointSource {
        self.source
    }
}

/// What is wrong with an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointErrorKind {
    /// It is no URL.
    NotAUrl,
    /// The URL's scheme is neither `http` nor `https`.
    NotHttp,
    /// The URL carries a user name or a password, which would end up in logs.
    UserInfo,
    /// The token can't stand in an HTTP header.
    InvalidToken(InvalidToken),
    /// The variable's value is no Unicode.
    NotUnicode,
}

/// Where an endpoint came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointSource {
    /// The argument of a constructor.
    Argument,
    /// An environment variable.
    Variable(&'static str),
    /// The address that counts where nothing is set.
    Default,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            EndpointSource::Argument => f.write_str("the engine's URL, given as an argument, ")?,
            EndpointSource::Variable(name) => write!(f, "the environment variable `{name}` ")?,
            EndpointSource::Default => write!(f, "the default `{DEFAULT_URL}` ")?,
        }
        match &self.kind {
            EndpointErrorKind::NotAUrl => write!(f, "is not a URL: write it like `{DEFAULT_URL}`"),
            EndpointErrorKind::NotHttp => {
                write!(f, "does not start with `http://` or `https://`: write it like `{DEFAULT_URL}`")
            }
            EndpointErrorKind::UserInfo => {
                write!(f, "has a user name or a password in it: leave them out and set `{API_KEY}`, or the token")
            }
            EndpointErrorKind::InvalidToken(reason) => write!(f, "can't be used: {reason}"),
            EndpointErrorKind::NotUnicode => f.write_str("is not Unicode: set it anew"),
        }
    }
}

impl fmt::Debug for EndpointError {
    /// Shows the message, too: it is what a program prints that returns the error from `main`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointError")
            .field("message", &format_args!("{self}"))
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl error::Error for EndpointError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.kind {
            EndpointErrorKind::InvalidToken(reason) => Some(reason),
            _ => None,
        }
    }
}
