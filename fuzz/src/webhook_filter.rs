//! `WebhookFilter`: a decision is delivered to a host of the list and nowhere else, whoever reads the URL.

use std::net::{Ipv4Addr, Ipv6Addr};

use rmcp::object;
use serde_json::Value;
use tower::Layer as _;
use tower_algenta::{Error, Profile, ToolRequest, WebhookFilterLayer};
use url::{Host, Url};

use crate::{
    checks::{Boxed, ask},
    model::webhooks::{self, Rules},
    silence,
    support::empty_result,
};

/// Checks a case of `webhooks.json`: a `url`, the `hosts` that are on the list, and the two knobs.
#[must_use]
pub fn check(data: &[u8]) -> bool {
    let Ok(input @ Value::Object(_)) = serde_json::from_slice(data) else { return false };
    let Some(url) = input["url"].as_str() else { return false };
    let hosts: Vec<&str> = input["hosts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let knobs = ["allow_http", "allow_internal"].map(|knob| input[knob] == true);

    let layer = match WebhookFilterLayer::new(&hosts) {
        Ok(layer) => layer,
        Err(error) => {
            assert!(!hosts.iter().all(|entry| webhooks::is_entry(entry)), "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
            return true;
        }
    };
    let is_strict = admits(&layer, url);
    let mut admitted = is_strict;
    for [http, internal] in [[false, false], knobs, [true, true]] {
        let mut layer = layer.clone();
        if http {
            layer = layer.dangerous_allow_http();
        }
        if internal {
            layer = layer.dangerous_allow_internal();
        }
        let is_admitted = admits(&layer, url);
        assert!(is_admitted || !admitted, "a knob refuses {url:?}");
        admitted = is_admitted;
        let expected = webhooks::admitted(Rules { hosts: &hosts, http, internal }, url);
        assert!(expected.is_none_or(|expected| expected == is_admitted), "{url:?} by {hosts:?}: {is_admitted}");
        if is_admitted {
            leads_to_the_list(url, &hosts, http, internal);
        }
    }
    true
}

/// Whether the engine receives the call, as it was sent.
fn admits(layer: &WebhookFilterLayer, url: &str) -> bool {
    let stack = |_, engine| Boxed::new(layer.layer(engine));
    let ask = |tool: &'static str| {
        let call = ToolRequest::call(tool, object!({"decision_id": "d", "webhook_url": url}));
        let (outcome, received) = ask(&stack, Profile::Full, call.clone(), |_: &ToolRequest| Ok(empty_result()));
        assert!(received.len() <= 1, "P7");
        for received in &received {
            assert_eq!(format!("{received:?}"), format!("{call:?}"), "a request passes as it is");
        }
        (outcome, !received.is_empty())
    };
    let (outcome, is_asked) = ask("simulate");
    assert!(outcome.is_ok() && is_asked, "other tools have no webhook");
    match ask("execute_decision") {
        (Ok(_), true) => true,
        (Err(error @ Error::InvalidArguments(_)), false) => {
            silence::check(&error);
            false
        }
        (outcome, is_asked) => panic!("{url:?} ended in {outcome:?}, received: {is_asked}"),
    }
}

/// What a parser that nobody here wrote sees in a URL that was let through.
fn leads_to_the_list(url: &str, hosts: &[&str], http: bool, internal: bool) {
    let parsed = Url::parse(url).expect("it is a URL");
    assert!(parsed.scheme() == "https" || http && parsed.scheme() == "http", "{url:?}");
    assert!(parsed.username().is_empty() && parsed.password().is_none(), "{url:?}");
    let host = parsed.host().expect("it has a host").to_owned();
    let name = |host: &Host| host.to_string().trim_end_matches('.').to_owned();
    let is_listed = hosts.iter().any(|entry| {
        let (domain, is_below) = entry.strip_prefix("*.").map_or((*entry, false), |domain| (domain, true));
        let listed = name(&Host::parse(domain).expect("the list was taken"));
        if is_below { name(&host).ends_with(&format!(".{listed}")) } else { name(&host) == listed }
    });
    assert!(is_listed, "{url:?} by {hosts:?}");
    let is_internal = match host {
        Host::Domain(domain) => domain.trim_end_matches('.').rsplit('.').next() == Some("localhost"),
        Host::Ipv4(address) => is_internal_v4(address),
        Host::Ipv6(address) => is_internal_v6(address),
    };
    assert!(internal || !is_internal, "{url:?}");
}

/// What the standard library knows of addresses.
const fn is_internal_v4(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
}

fn is_internal_v6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.is_multicast()
        || address.to_ipv4_mapped().is_some()
        || address.to_ipv4().is_some_and(is_internal_v4)
}
