//! Who may call, and under which profile.

use std::{
    collections::HashMap,
    error::Error,
    fmt, fs,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use hyper::{HeaderMap, header::AUTHORIZATION};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tower_algenta::{BearerToken, Profile};

use crate::args::Args;

/// A caller who was let in.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    pub(crate) profile: Profile,
    /// What the caller sent, for the engine.
    pub(crate) token: Option<BearerToken>,
}

/// The callers, shared by all requests.
#[derive(Clone)]
pub(crate) enum Callers {
    Anyone(Profile),
    Listed { file: PathBuf, list: Arc<RwLock<List>> },
}

type TokenHash = [u8; 32];
type List = HashMap<TokenHash, (Arc<str>, Profile)>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    callers: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    token_sha256: String,
    profile: Profile,
}

impl Callers {
    pub(crate) fn from_args(args: &Args) -> Result<Self, Box<dyn Error>> {
        let Some(file) = &args.callers else { return Ok(Self::Anyone(args.profile)) };
        let list = Arc::new(RwLock::new(read(file)?));
        Ok(Self::Listed { file: file.clone(), list })
    }

    /// Reads the file again. If it can't be read, the callers stay who they were.
    pub(crate) fn reload(&self) -> Result<(), Box<dyn Error>> {
        if let Self::Listed { file, list } = self {
            let read = read(file)?;
            *list.write().unwrap_or_else(PoisonError::into_inner) = read;
        }
        Ok(())
    }

    /// The caller who sent these headers, if there is one.
    pub(crate) fn find(&self, headers: &HeaderMap) -> Option<Caller> {
        let token = bearer_token(headers).ok()?;
        match self {
            Self::Anyone(profile) => {
                let token = token.and_then(|token| BearerToken::new(token).ok());
                Some(Caller { name: "anyone".into(), profile: *profile, token })
            }
            Self::Listed { list, .. } => {
                let token = token?;
                let list = list.read().unwrap_or_else(PoisonError::into_inner);
                // The digest is what is looked up, so how long that takes tells nothing of a token.
                let (name, profile) = list.get::<TokenHash>(&Sha256::digest(token).into())?;
                let token = Some(BearerToken::new(token).ok()?);
                Some(Caller { name: Arc::clone(name), profile: *profile, token })
            }
        }
    }
}

/// The headers say who calls, but not in a way that can be read.
struct Unreadable;

/// The token in the headers, if there is one.
fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, Unreadable> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Unreadable);
    }
    let text = value.to_str().map_err(|_| Unreadable)?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(token.trim_start())),
        _ => Err(Unreadable),
    }
}

fn read(path: &Path) -> Result<List, Box<dyn Error>> {
    let named = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    let file: File = serde_json::from_str(&text).map_err(|error| named(&error))?;
    let mut list = List::new();
    for Entry { name, token_sha256, profile } in file.callers {
        let hash = hash(&token_sha256)
            .ok_or_else(|| named(&format_args!("token_sha256 of \"{name}\" is not 64 hexadecimal digits")))?;
        if list.insert(hash, (name.as_str().into(), profile)).is_some() {
            return Err(named(&format_args!("the token of \"{name}\" is another caller's, too")).into());
        }
    }
    if list.is_empty() {
        return Err(named(&"it names no caller").into());
    }
    Ok(list)
}

fn hash(hexadecimal: &str) -> Option<TokenHash> {
    let digits = hexadecimal.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, digits) in hash.iter_mut().zip(hexadecimal.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}

impl fmt::Display for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone(profile) => write!(f, "anyone, under {profile}: {}", tools(*profile)),
            Self::Listed { file, list } => {
                let list = list.read().unwrap_or_else(PoisonError::into_inner);
                write!(f, "{} from {}", list.len(), file.display())?;
                let mut callers: Vec<_> = list.values().collect();
                callers.sort();
                callers.into_iter().try_for_each(|(name, profile)| {
                    write!(f, "\n           {name:?}, under {profile}: {}", tools(*profile))
                })
            }
        }
    }
}

fn tools(profile: Profile) -> String {
    match profile {
        Profile::Full => "whatever the engine advertises".to_owned(),
        profile => profile.tools().collect::<Vec<_>>().join(", "),
    }
}
