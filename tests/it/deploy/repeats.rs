//! A replica dies with calls under way: no balancer sends them again, and one that does is found out.

use std::time::Duration;

use futures::future::join_all;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tower_algenta::{Endpoint, Profile, Toolset};

use super::{
    Balancer, Kind, Replica, engine,
    load::{Call, faults, lost},
};
use crate::gateway::process::SOON;

/// Enough for both replicas to have some.
const CALLS: usize = 8;

/// Executions under way when one of the replicas is killed: how many did not end in a receipt, and what was repeated.
struct Killed {
    lost: usize,
    faults: Vec<String>,
}

async fn killed(kind: Kind, config: &str, test: &str) -> Option<Killed> {
    let engine = engine(Duration::from_millis(700)).await;
    let before = engine.received().len();
    let (a, b) = (Replica::before(&engine).await, Replica::before(&engine).await);
    let balancer = Balancer::with(kind, config, [&a, &b], test).await?;
    let tools = insistent(&balancer.url).await;
    let calls = (0..CALLS).map(|call| {
        let tools = tools.clone();
        tokio::spawn(async move { Call::execute(&tools, format!("killed-{call}")).await })
    });
    let calls: Vec<_> = calls.collect();
    let under_way = async {
        while engine.received().len() < before + CALLS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, under_way).await.expect("the calls arrive");
    a.kill();
    let calls: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    Some(Killed { lost: lost(&calls).len(), faults: faults(&calls, &engine) })
}

/// A client that asks for retries in the way that Envoy understands.
async fn insistent(url: &str) -> Toolset {
    let headers = [("x-envoy-retry-on", "5xx,reset,connect-failure"), ("x-envoy-max-retries", "20")];
    let headers = headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let http = reqwest::Client::builder().default_headers(HeaderMap::from_iter(headers)).build().unwrap();
    let endpoint = Endpoint::new(url).unwrap().http_client(http);
    Toolset::builder().profile(Profile::Execute).endpoint(endpoint).connect().await.unwrap()
}

/// The configuration that is shipped, changed here and there.
#[track_caller]
fn changed(kind: Kind, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(kind.shipped().to_owned(), |config, (from, to)| {
        assert!(config.contains(from), "{from}");
        config.replace(from, to)
    })
}

const NO_LIMIT: (&str, &str) = ("max_retries: 0", "max_retries: 3");

/// Takes this machine's clients for internal ones, who may ask for retries.
const INTERNAL: (&str, &str) = (
    "stat_prefix: mcp",
    "stat_prefix: mcp
                use_remote_address: true
                internal_address_config: { cidr_ranges: [{ address_prefix: 127.0.0.0, prefix_len: 8 }] }",
);

#[tokio::test]
async fn what_is_shipped_repeats_nothing() {
    for (kind, changes) in
        [(Kind::Nginx, &[][..]), (Kind::HaProxy, &[]), (Kind::Envoy, &[]), (Kind::Envoy, &[INTERNAL, NO_LIMIT])]
    {
        let Some(killed) = killed(kind, &changed(kind, changes), "calls of a killed replica").await else { continue };
        assert!((1..CALLS).contains(&killed.lost), "{kind:?}, {changes:?}: {}", killed.lost);
        assert_eq!(killed.faults, [""; 0], "{kind:?}, {changes:?}");
    }
}

#[tokio::test]
async fn what_repeats_is_found_out() {
    for (kind, changes) in [
        (Kind::Nginx, &[("next_upstream off", "next_upstream error timeout non_idempotent")][..]),
        (
            Kind::HaProxy,
            &[
                ("retries 0", "retries 3\n    retry-on all-retryable-errors"),
                ("no option redispatch", "option redispatch"),
            ],
        ),
        (
            Kind::Envoy,
            &[(r#"retry_on: "", num_retries: 0"#, r#"retry_on: "reset,connect-failure", num_retries: 20"#), NO_LIMIT],
        ),
        // Here the client alone asks for it.
        (Kind::Envoy, &[("- x-envoy-", "- not-x-envoy-"), INTERNAL, NO_LIMIT]),
    ] {
        let Some(killed) = killed(kind, &changed(kind, changes), "a balancer that repeats").await else { continue };
        let twice = killed.faults.iter().filter(|fault| fault.contains("was executed 2 times")).count();
        assert!(twice > 0, "{changes:?}: {:?}, {} lost", killed.faults, killed.lost);
    }
}
