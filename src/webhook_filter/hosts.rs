//! Where a webhook may be: the pure part, without tower.

use std::{
    error, fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use url::{Host, Url};

use crate::{error::InvalidReason, tool_names};

/// The hosts that a webhook may have, and what else its URL may be.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    patterns: Vec<Pattern>,
    pub(super) allow_http: bool,
    pub(super) allow_private: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Pattern {
    Exact(Host),
    /// Any name below this one, which starts with a dot.
    Below(String),
}

/// An entry of the list is neither a host nor `*.` and a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidHost {
    entry: String,
}

impl fmt::Display for InvalidHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is no host: expected a name, an address or `*.` and a domain", self.entry)
    }
}

impl error::Error for InvalidHost {}

impl Hosts {
    pub(super) fn new<I>(entries: I) -> Result<Self, InvalidHost>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let patterns = entries.into_iter().map(|entry| Pattern::read(entry.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self { patterns, allow_http: false, allow_private: false })
    }

    /// Whether a model may have a decision delivered to `webhook_url`.
    pub(super) fn admit(&self, webhook_url: &str) -> Result<(), InvalidReason> {
        let url = plain(webhook_url)?;
        if url.scheme() != "https" && !self.allow_http {
            return Err(InvalidReason::WebhookNotHttps);
        }
        let host = without_root(url.host().ok_or(InvalidReason::WebhookUrlMalformed)?.to_owned());
        if !self.patterns.iter().any(|pattern| pattern.matches(&host)) {
            return Err(InvalidReason::WebhookHostNotAllowed);
        }
        if !self.allow_private && is_internal(&host) {
            return Err(InvalidReason::WebhookAddressInternal);
        }
        Ok(())
    }
}

impl Pattern {
    fn read(entry: &str) -> Result<Self, InvalidHost> {
        let invalid = || InvalidHost { entry: tool_names::for_message(entry) };
        let (is_below, name) = match entry.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, entry),
        };
        if name.contains('*') {
            return Err(invalid());
        }
        match (is_below, without_root(Host::parse(name).map_err(|_| invalid())?)) {
            (true, Host::Domain(domain)) => Ok(Self::Below(format!(".{domain}"))),
            (true, Host::Ipv4(_) | Host::Ipv6(_)) => Err(invalid()),
            (false, host) => Ok(Self::Exact(host)),
        }
    }

    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Exact(expected), host) => expected == host,
            (Self::Below(suffix), Host::Domain(domain)) => {
                domain.len() > suffix.len() && domain.ends_with(suffix.as_str())
            }
            (Self::Below(_), Host::Ipv4(_) | Host::Ipv6(_)) => false,
        }
    }
}

/// The URL, if every parser reads the same host in it.
///
/// Parsers differ over user-info, backslashes, white space, percent signs, non-ASCII names and odd spellings of
/// addresses. So the authority has to be written as it is serialised: what this parser read is what stands there.
fn plain(text: &str) -> Result<Url, InvalidReason> {
    let malformed = InvalidReason::WebhookUrlMalformed;
    if !text.is_ascii() || text.contains(|char: char| char.is_ascii_control() || matches!(char, ' ' | '\\')) {
        return Err(malformed);
    }
    let (scheme, rest) = text.split_once("://").ok_or(malformed)?;
    let default_port = match &*scheme.to_ascii_lowercase() {
        "https" => ":443",
        "http" => ":80",
        _ => return Err(InvalidReason::WebhookNotHttps),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let url = Url::parse(text).map_err(|_| malformed)?;
    let host = url.host_str().ok_or(malformed)?;
    let is_plain = match url.port() {
        Some(port) => authority == format!("{host}:{port}"),
        None => authority.strip_suffix(default_port).unwrap_or(&authority) == host,
    };
    if is_plain { Ok(url) } else { Err(malformed) }
}

/// The host without the dot of the root, which changes nothing about where it leads.
fn without_root(host: Host) -> Host {
    match host {
        Host::Domain(domain) => Host::Domain(domain.strip_suffix('.').map(str::to_owned).unwrap_or(domain)),
        address => address,
    }
}

/// Whether the host is this machine, this network or no single host at all.
fn is_internal(host: &Host) -> bool {
    match host {
        Host::Domain(domain) => domain == "localhost" || domain.ends_with(".localhost"),
        Host::Ipv4(address) => is_internal_v4(*address),
        Host::Ipv6(address) => is_internal_v6(*address),
    }
}

fn is_internal_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        // "This network", carrier-grade NAT, protocol assignments, benchmarks, reserved and broadcast.
        || a == 0
        || (a == 100 && b & 0b1100_0000 == 64)
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && b & 0b1111_1110 == 18)
        || a >= 240
}

fn is_internal_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Addresses that carry an IPv4 one: compatible, NAT64 and 6to4.
    let carried = match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    };
    address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.is_multicast()
        // No network has mapped addresses: they are a second spelling of others.
        || address.to_ipv4_mapped().is_some()
        // Deprecated site-local, documentation, Teredo, local-use NAT64.
        || first & 0xffc0 == 0xfec0
        || (first, second) == (0x2001, 0x0db8)
        || (first, second) == (0x2001, 0)
        || address.segments()[..3] == [0x64, 0xff9b, 1]
        || carried.is_some_and(is_internal_v4)
}
