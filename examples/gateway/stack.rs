//! The governed stack, and what is under it.

use std::{error::Error, fmt, sync::Arc};

use hyper::http::request::Parts;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceBuilder, util::option_layer};
use tower_algenta::{
    AuditLayer, BoxError, Endpoint, EngineClient, FlatNamesLayer, GovernanceLayer, Profile, ProfileFromExtensions,
    ToolNames, ToolRequest, ToolResponse, ToolServer, WebhookFilterLayer,
    audit::{self, JsonLines},
    client::{ChildProcess, Connections},
    server::OnDenial,
};

use crate::{args::Args, callers::Caller};

/// The engine.
pub(crate) enum Upstream {
    Shared(Endpoint),
    PerCaller(Endpoint),
    Command(String, std::time::Duration),
}

impl Upstream {
    pub(crate) fn from_args(args: &Args) -> Result<Self, Box<dyn Error>> {
        if let Some(command) = &args.upstream_command {
            if command.trim().is_empty() {
                return Err("--upstream-command is empty".into());
            }
            return Ok(Self::Command(command.clone(), args.call_timeout()));
        }
        let endpoint = Endpoint::resolve(args.upstream.as_deref())?.call_timeout(args.call_timeout());
        Ok(if args.has_one_identity() { Self::Shared(endpoint) } else { Self::PerCaller(endpoint) })
    }

    pub(crate) fn connections(&self) -> Connections {
        match self {
            Self::Shared(endpoint) => Connections::shared(endpoint.clone()),
            Self::PerCaller(endpoint) => Connections::per_caller(endpoint.clone()),
            Self::Command(command, timeout) => {
                let (command, timeout) = (command.clone(), *timeout);
                Connections::shared_with(move || {
                    let mut words = command.split_whitespace();
                    let child = ChildProcess::new(words.next().unwrap_or_default()).args(words).call_timeout(timeout);
                    EngineClient::spawn(child)
                })
            }
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(endpoint) if endpoint.has_token() => {
                write!(f, "{}, with this process's own token for all callers", endpoint.url())
            }
            Self::Shared(endpoint) => write!(f, "{}, without a token", endpoint.url()),
            Self::PerCaller(endpoint) => write!(f, "{}, with each caller's own token", endpoint.url()),
            Self::Command(command, _) => write!(f, "`{command}`, one process for all callers"),
        }
    }
}

/// The server over the governed stack.
pub(crate) fn server(
    args: &Args,
    connections: &Connections,
    closes: watch::Receiver<bool>,
    calls: &TaskTracker,
) -> Result<
    ToolServer<
        impl Service<ToolRequest, Response = ToolResponse, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
        + use<>,
    >,
    Box<dyn Error>,
> {
    let names = ToolNames::prefixed(&*args.upstream_prefix);
    let flat = args.flat_names.then(|| FlatNamesLayer::new().tool_names(names.clone()));
    // What stands above the flat names, and the client.
    let shown = if args.flat_names { ToolNames::flat() } else { names.clone() };
    let webhooks = match &args.webhook_host[..] {
        [] => None,
        hosts => Some(WebhookFilterLayer::new(hosts)?.tool_names(names.clone())),
    };
    let audit = match &args.audit {
        None => None,
        Some(path) => {
            let lines = JsonLines::append(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Some(AuditLayer::new(Arc::new(lines)).tool_names(shown.clone()))
        }
    };
    let fallback = args.profile;
    let calls = calls.clone();
    let stack = ServiceBuilder::new()
        .map_future(move |call| calls.track_future(call))
        .map_request(move |request| with_caller(request, fallback))
        .layer(option_layer(audit))
        .layer(option_layer(flat))
        .layer(GovernanceLayer::new(ProfileFromExtensions::new()).tool_names(names.clone()))
        .layer(option_layer(webhooks))
        .service(connections.clone());
    let on_denial = if args.denials_as_tool_errors { OnDenial::ToolError } else { OnDenial::Error };
    let mut server = ToolServer::new(stack).tool_names(shown).on_denial(on_denial);
    if args.has_one_identity() {
        // Without a caller's token, an engine may have nothing to tell.
        server = server.list_changes(until(closes, connections.watch_list_changes()));
    }
    if !args.pass_through.is_empty() {
        server = server.pass_through(connections.clone(), args.pass_through.iter().copied().map(Into::into));
    }
    Ok(server)
}

/// `changes` until the gateway closes: whoever listens to them would hold it up.
fn until(mut closes: watch::Receiver<bool>, mut changes: watch::Receiver<u64>) -> watch::Receiver<u64> {
    let (tell, told) = watch::channel(0);
    tokio::spawn(async move {
        let relay = async {
            while changes.changed().await.is_ok() {
                tell.send_modify(|changes| *changes += 1);
            }
        };
        tokio::select! {
            () = relay => {}
            _ = closes.wait_for(|closes| *closes) => {}
        }
    });
    told
}

/// Puts the caller whom the HTTP side let in where the layers look.
fn with_caller(mut request: ToolRequest, over_stdio: Profile) -> ToolRequest {
    let caller = match request.extensions().get::<Parts>() {
        Some(parts) => parts.extensions.get::<Caller>().cloned(),
        None => Some(Caller { name: "stdio".into(), profile: over_stdio, token: None }),
    };
    // Without one, the profile is `observe` and there is no token.
    if let Some(caller) = caller {
        let extensions = request.extensions_mut();
        extensions.insert(caller.profile);
        extensions.insert(audit::Caller::new(caller.name));
        if let Some(token) = caller.token {
            extensions.insert(token);
        }
    }
    request
}
