//! A secret that shows itself to the engine only.

use std::{error, fmt};

use http::HeaderValue;
use rmcp::model::ErrorData;
use serde_json::Value;

const SCHEME: &str = "Bearer ";

/// What stands in a text where the token was.
const REDACTED: &str = "[redacted]";

/// A bearer token. It has no `Display`, and its `Debug` does not show it.
///
/// ```
/// # use tower_algenta::client::BearerToken;
/// let token = BearerToken::new("s3cr3t")?;
/// assert_eq!(format!("{token:?}"), "BearerToken(..)");
/// assert!(BearerToken::new("s3cr3t\n").is_err());
/// # Ok::<_, tower_algenta::client::InvalidToken>(())
/// ```
#[derive(Clone)]
pub struct BearerToken {
    // Marked sensitive, so that an HTTP stack that prints its headers leaves it out.
    header: HeaderValue,
}

impl BearerToken {
    /// Takes the token as it was issued, without the word `Bearer`.
    ///
    /// # Errors
    ///
    /// When it is empty, or holds anything but visible ASCII characters: it could not stand in an HTTP header, or would
    /// not arrive as it is.
    pub fn new(token: impl AsRef<str>) -> Result<Self, InvalidToken> {
        let token = token.as_ref();
        if token.is_empty() {
            return Err(InvalidToken { empty: true });
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidToken { empty: false });
        }
        let mut header = HeaderValue::try_from([SCHEME, token].concat()).map_err(|_| InvalidToken { empty: false })?;
        header.set_sensitive(true);
        Ok(Self { header })
    }

    /// The value of the `Authorization` header.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Takes the token out of what the engine wrote.
    pub(super) fn redact(&self, error: &mut ErrorData) {
        if let Some(message) = self.redacted(&error.message) {
            error.message = message.into();
        }
        error.data.iter_mut().for_each(|data| self.redact_value(data));
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(redacted) = self.redacted(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => {
                if members.keys().any(|key| key.contains(self.secret())) {
                    // Whoever puts a token into a key wants it read; nothing of such an object is kept.
                    members.clear();
                }
                members.values_mut().for_each(|member| self.redact_value(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn redacted(&self, text: &str) -> Option<String> {
        let secret = self.secret();
        text.contains(secret).then(|| text.replace(secret, REDACTED))
    }

    fn secret(&self) -> &str {
        // Visible ASCII after the scheme: `new` takes nothing else.
        self.header.to_str().unwrap_or_default().strip_prefix(SCHEME).unwrap_or_default()
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(..)")
    }
}

/// A text that can't be a bearer token. The message does not repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidToken {
    empty: bool,
}

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.empty {
            "the token is empty"
        } else {
            "the token holds white space, a line break or a character outside ASCII: give it bare, without `Bearer`"
        })
    }
}

impl error::Error for InvalidToken {}
