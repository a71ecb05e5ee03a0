//! Where a webhook may be.

use rmcp::object;
use tower_algenta::{Error, ToolRequest, WebhookFilterLayer};

use super::{cases, through};
use crate::{
    model::webhooks::{self, Rules},
    random::Random,
    support::empty_result,
};

/// Lists of hosts, each with some that are refused for what they are.
const LISTS: [&[&str]; 5] = [
    &["hooks.example", "*.corp.example", "93.184.216.34", "[2606:4700::1111]"],
    &["localhost", "*.localhost", "127.0.0.1", "10.0.0.7", "[::1]", "[fd00::1]", "[::ffff:7f00:1]"],
    &["*.example", "a.corp.example.", "[::ffff:5db8:d822]", "[64:ff9b::5db8:d822]", "[2002:a00:1::]"],
    &["HOOKS.example", "xn--bcher-kva.example", "172.32.0.1", "[2001:4860::8888]"],
    &[],
];

/// What stands before an authority, as most writers do, and as some.
const STARTS: [&str; 8] = ["https://", "https://", "https://", "HTTPS://", "http://", "ftp://", "https:/", ""];

const HOSTS: [&str; 26] = [
    "hooks.example",
    "Hooks.Example",
    "a.corp.example",
    "corp.example",
    "b.a.corp.example",
    "evilcorp.example",
    "xn--bcher-kva.example",
    "localhost",
    "a.localhost",
    "93.184.216.34",
    "127.0.0.1",
    "10.0.0.7",
    "172.32.0.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[2606:4700::1111]",
    "[2606:4700:0::1111]",
    "[fd00::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:5db8:d822]",
    "[64:ff9b::5db8:d822]",
    "[2001:4860::8888]",
];

/// What may stand anywhere.
const PIECES: [&str; 26] = [
    ".",
    "..",
    "@",
    ":",
    ":443",
    ":80",
    ":8443",
    ":0443",
    ":65536",
    "/",
    "/x?y",
    "#",
    "\\",
    "%2e",
    "%40",
    " ",
    "\n",
    "\0",
    "\u{3002}",
    "\u{ff48}",
    "-",
    "xn--",
    "[",
    "]",
    "example",
    "evil.example",
];

/// Half of them lead to the list, before something is done to them.
fn url(random: &mut Random, hosts: &[&str]) -> String {
    let host = if hosts.is_empty() || random.one_in(2) { random.pick(&HOSTS) } else { random.pick(hosts) };
    let mut url = format!("{}{}", random.pick(&STARTS), host.replace("*.", "a."));
    for _ in 0..random.below(3) {
        let at = if random.one_in(2) { url.len() } else { random.below(url.len() + 1) };
        let at = (0..=at).rev().find(|at| url.is_char_boundary(*at)).unwrap_or(0);
        match random.below(6) {
            0 => url.truncate(at),
            1 => url.insert_str(at, random.pick(&HOSTS)),
            _ => url.insert_str(at, random.pick(&PIECES)),
        }
    }
    url
}

#[track_caller]
fn compare(rules: Rules<'_>, url: &str) -> Option<bool> {
    let mut layer = WebhookFilterLayer::new(rules.hosts).unwrap();
    if rules.http {
        layer = layer.dangerous_allow_http();
    }
    if rules.internal {
        layer = layer.dangerous_allow_internal();
    }
    let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": url}));
    let (outcome, received) = through(&layer, call, || Ok(empty_result()));
    let is_admitted = !received.is_empty();
    assert_eq!(matches!(outcome, Err(Error::InvalidArguments(_))), !is_admitted, "{url:?}: {outcome:?}");
    let expected = webhooks::admitted(rules, url);
    assert!(expected.is_none_or(|expected| expected == is_admitted), "{rules:?}: {url:?} {is_admitted}");
    expected
}

#[test]
fn webhooks_are_admitted_as_in_the_model() {
    let mut random = Random::new(0x005e_ed0c);
    let mut seen = [0; 3];
    for _ in 0..cases() {
        let rules =
            Rules { hosts: LISTS[random.below(LISTS.len())], http: random.one_in(4), internal: random.one_in(4) };
        let expected = compare(rules, &url(&mut random, rules.hosts));
        seen[expected.map_or(2, usize::from)] += 1;
    }
    assert!(seen[..2].iter().all(|count| count * 20 > cases()), "some pass, and some don't: {seen:?}");
    assert!(seen[2] * 20 < cases(), "hardly any is left open: {seen:?}");
}

/// What the differential test found, and what to find again.
#[test]
fn cases_that_once_differed() {
    let mapped = Rules { hosts: &["[::ffff:5db8:d822]"], http: false, internal: false };
    assert_eq!(compare(mapped, "https://[::ffff:5db8:d822]/x"), Some(false));
    assert_eq!(compare(Rules { internal: true, ..mapped }, "https://[::ffff:5db8:d822]/x"), Some(true));
}
