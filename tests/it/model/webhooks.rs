//! Where a decision may be delivered.
//!
//! URLs are read by hand. What the design leaves open (a name that another reader could spell in another way) is `None`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What the operator allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) hosts: &'a [&'a str],
    pub(crate) http: bool,
    pub(crate) internal: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Host {
    /// Without the dot of the root, in lower case.
    Name(String),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

/// Whether the webhook is let through.
pub(crate) fn admitted(rules: Rules<'_>, url: &str) -> Option<bool> {
    if !url.chars().all(|char| char.is_ascii_graphic() && char != '\\') {
        return Some(false);
    }
    let Some((scheme, rest)) = url.split_once("://") else { return Some(false) };
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" && !(scheme == "http" && rules.http) {
        return Some(false);
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains(['@', '%']) {
        return Some(false);
    }
    let Some((host, port)) = host_and_port(authority) else { return Some(false) };
    if port.is_some_and(|port| !is_port(port)) {
        return Some(false);
    }
    let Some(host) = read(host) else { return Some(false) };
    if is_internal(&host) && !rules.internal {
        return Some(false);
    }
    match is_listed(rules.hosts, &host) {
        Some(true) if !is_plain(&host) => None,
        is_listed => is_listed,
    }
}

/// Whether an entry of the list names a host, as far as the design says so.
pub(crate) fn is_entry(entry: &str) -> bool {
    match entry.strip_prefix("*.") {
        Some(domain) => read(domain).is_some_and(|host| matches!(host, Host::Name(_)) && is_plain(&host)),
        None => read(entry).is_some_and(|host| is_plain(&host)),
    }
}

fn host_and_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end);
    match rest.strip_prefix(':') {
        Some(port) => Some((host, Some(port))),
        None => rest.is_empty().then_some((host, None)),
    }
}

/// As it is written by whoever adds no zeros.
fn is_port(port: &str) -> bool {
    port.parse::<u16>().is_ok_and(|number| number.to_string() == port)
}

/// The host, if all readers see the same one.
fn read(text: &str) -> Option<Host> {
    let text = text.to_ascii_lowercase();
    if let Some(address) = text.strip_prefix('[') {
        let address = address.strip_suffix(']')?;
        let parsed: Ipv6Addr = address.parse().ok()?;
        return (written(parsed) == address).then_some(Host::V6(parsed));
    }
    let name = text.strip_suffix('.').unwrap_or(&text);
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hex = last.strip_prefix("0x").is_some_and(|digits| digits.chars().all(|char| char.is_ascii_hexdigit()));
    if is_hex || last.chars().all(|char| char.is_ascii_digit()) && !last.is_empty() {
        // To somebody it is an address; it has to be one to everybody.
        let parsed: Ipv4Addr = text.parse().ok()?;
        return (parsed.to_string() == text).then_some(Host::V4(parsed));
    }
    (!name.is_empty()).then(|| Host::Name(name.to_owned()))
}

/// An address in the one form: no leading zeros, and the first of the longest runs of zeros left out.
fn written(address: Ipv6Addr) -> String {
    let segments = address.segments();
    let hex = |segments: &[u16]| segments.iter().map(|segment| format!("{segment:x}")).collect::<Vec<_>>().join(":");
    for len in (2..=8).rev() {
        for start in 0..=8 - len {
            if segments[start..start + len].iter().all(|segment| *segment == 0) {
                return format!("{}::{}", hex(&segments[..start]), hex(&segments[start + len..]));
            }
        }
    }
    hex(&segments)
}

/// A name that no reader spells otherwise: letters, digits and hyphens inside, and nothing that stands for other letters.
fn is_plain(host: &Host) -> bool {
    let Host::Name(name) = host else { return true };
    let is_letter = |char: char| char.is_ascii_alphanumeric() || char == '-';
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.chars().all(is_letter)
                && !label.starts_with('-')
                && !label.ends_with('-')
                && !label.get(2..).is_some_and(|rest| rest.starts_with("--"))
        })
}

fn is_listed(entries: &[&str], host: &Host) -> Option<bool> {
    let matches = |entry: &&str| match (entry.strip_prefix("*."), host) {
        (Some(domain), Host::Name(name)) => match read(domain) {
            Some(Host::Name(domain)) => name.ends_with(&format!(".{domain}")) && name.len() > domain.len() + 1,
            _ => false,
        },
        (Some(_), _) => false,
        (None, host) => read(entry).as_ref() == Some(host),
    };
    if entries.iter().any(matches) {
        return Some(true);
    }
    // An odd entry may be the host in other words.
    entries.iter().all(|entry| is_entry(entry)).then_some(false)
}

/// Blocks of special addresses, and how many bits each shares.
const SPECIAL_V4: [([u8; 4], u32); 14] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

const SPECIAL_V6: [(&str, u32); 10] = [
    ("::", 128),
    ("::1", 128),
    ("::ffff:0:0", 96),
    ("64:ff9b:1::", 48),
    ("2001::", 32),
    ("2001:db8::", 32),
    ("fc00::", 7),
    ("fe80::", 10),
    ("fec0::", 10),
    ("ff00::", 8),
];

/// Blocks of addresses that lead to an IPv4 one, and the bit at which that begins.
const CARRIERS: [(&str, u32, u32); 3] = [("::", 96, 96), ("64:ff9b::", 96, 96), ("2002::", 16, 16)];

fn is_internal(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::V4(address) => is_special_v4(*address),
        Host::V6(address) => {
            let shares = |block: &str, bits: u32| {
                let block: Ipv6Addr = block.parse().expect("it is an address");
                (address.to_bits() ^ block.to_bits()).leading_zeros() >= bits
            };
            let carried = |at: u32| Ipv4Addr::from_bits((address.to_bits() << at >> 96) as u32);
            SPECIAL_V6.iter().any(|(block, bits)| shares(block, *bits))
                || CARRIERS.iter().any(|(block, bits, at)| shares(block, *bits) && is_special_v4(carried(*at)))
        }
    }
}

fn is_special_v4(address: Ipv4Addr) -> bool {
    let shares = |block: [u8; 4]| (address.to_bits() ^ u32::from_be_bytes(block)).leading_zeros();
    SPECIAL_V4.iter().any(|(block, bits)| shares(*block) >= *bits)
}
