//! Refusals: the engine was not called.

use std::{error, fmt};

use crate::{NEVER_MODEL_FACING, hidden_fields::canonical, tool_names};

/// The tool is outside the profile, or its name is none that a layer can vouch for.
///
/// The message doesn't say whether the tool exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolNotAllowed {
    // Escaped and cut, so that a name can't drive a terminal or a prompt through the message.
    tool: Option<Box<str>>,
}

impl ToolNotAllowed {
    pub(crate) fn new(tool: &str) -> Self {
        let spelled = canonical(&tool.chars().take(tool_names::QUOTED_CHARS).collect::<String>());
        let names_a_hidden_field = NEVER_MODEL_FACING.iter().any(|name| spelled.contains(&canonical(name)));
        Self { tool: (!names_a_hidden_field).then(|| tool_names::for_message(tool).into()) }
    }

    /// The name that was asked for: escaped, at most 128 characters of it. `None` if it spells a hidden field.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }
}

impl fmt::Display for ToolNotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "unknown tool \"{tool}\""),
            None => f.write_str("unknown tool"),
        }
    }
}

impl error::Error for ToolNotAllowed {}

/// The call was refused before the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidArguments {
    reason: InvalidReason,
}

impl InvalidArguments {
    pub(crate) const fn new(reason: InvalidReason) -> Self {
        Self { reason }
    }

    /// Which rule the call broke.
    #[must_use]
    pub const fn reason(&self) -> InvalidReason {
        self.reason
    }
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            InvalidReason::OverrideUsed
            | InvalidReason::NoOverride
            | InvalidReason::DenialForgeable
            | InvalidReason::OperatorAboveStack => write!(f, "override refused: {}", self.reason),
            reason => write!(f, "invalid arguments: {reason}"),
        }
    }
}

impl error::Error for InvalidArguments {}

/// Why a call was refused before the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidReason {
    /// `decision_id` is missing or not a string.
    DecisionIdMissing,
    /// `decision_id` is empty, longer than 256 bytes, or not one path segment. The real server interpolates it into a
    /// URL, where `../decisions/plan?x=` reached another endpoint.
    DecisionIdMalformed,
    /// `webhook_url` is missing or not a string.
    WebhookUrlMissing,
    /// `decision_id` or `webhook_url` comes in another spelling (too): `webhookUrl`. An engine might take either.
    AmbiguousName,
    /// `timeout_seconds` is neither a number nor null.
    TimeoutNotANumber,
    /// The arguments carry a hidden field, and [`OnHidden::Refuse`](crate::OnHidden::Refuse) is set.
    HiddenField,
    /// The arguments carry a hidden field below the top level, and [`Nested::Refuse`](crate::Nested::Refuse) is set.
    HiddenFieldNested,
    /// An argument holds text that only a lax JSON parser reads and that seems to carry a hidden field.
    UnreadableText,
    /// The arguments nest more than 128 containers.
    TooDeep,
    /// `input_responses` or `request_state` on a governed call: they could carry an approval.
    ContinuationRefused,
    /// `webhook_url` holds a brace, a quote or a control character. With `WebhookFilter`: it is no URL that every parser
    /// reads alike; write it without user-info and in ASCII.
    WebhookUrlMalformed,
    /// `webhook_url` is not HTTPS.
    WebhookNotHttps,
    /// The host of `webhook_url` is not on the list.
    WebhookHostNotAllowed,
    /// `webhook_url` leads to a loopback, private or other special address.
    WebhookAddressInternal,
    /// The denial was already overridden once.
    OverrideUsed,
    /// The contract has no override for the gate, or it was granted already.
    NoOverride,
    /// The call's arguments hold what a denial could be read from: a brace, in a text, or a member that is called `gate`.
    /// An engine that fails and quotes them may only seem to have denied the call, which may have run.
    DenialForgeable,
    /// An [`Operator`](crate::Operator) wraps a governed stack, which would strip what it sets. Wrap the service under it.
    OperatorAboveStack,
}

impl fmt::Display for InvalidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DecisionIdMissing => "`decision_id` must be a string",
            Self::DecisionIdMalformed => "`decision_id` must be one path segment of 1 to 256 bytes",
            Self::WebhookUrlMissing => "`webhook_url` must be a string",
            Self::AmbiguousName => "an argument is spelled like `decision_id` or `webhook_url` and is neither",
            Self::TimeoutNotANumber => "`timeout_seconds` must be a number",
            Self::HiddenField => "a field is reserved for operators",
            Self::HiddenFieldNested => "a nested field is reserved for operators (see `Nested`)",
            Self::UnreadableText => {
                "an argument holds text that looks like JSON and cannot be read safely (see `Nested`)"
            }
            Self::TooDeep => "the arguments nest more than 128 levels",
            Self::ContinuationRefused => "a governed call cannot continue an earlier one",
            Self::WebhookUrlMalformed => "`webhook_url` must be a plain URL",
            Self::WebhookNotHttps => "`webhook_url` must be HTTPS",
            Self::WebhookHostNotAllowed => "the host of `webhook_url` is not on the list",
            Self::WebhookAddressInternal => "`webhook_url` leads to an internal address",
            Self::OverrideUsed => "this denial was already overridden once",
            Self::NoOverride => "the contract has no override for this gate",
            Self::DenialForgeable => "the arguments of the call may be what the denial was read from",
            Self::OperatorAboveStack => "the operator wraps a governed stack and not the service under it",
        })
    }
}

/// The inner service answered a list with a call, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedResponse {
    asked_for: &'static str,
}

impl UnexpectedResponse {
    /// An answer to a request that this crate passes on without reading it.
    #[cfg(all(feature = "client", feature = "server"))]
    pub(crate) const TO_OTHER: Self = Self { asked_for: "another answer" };
    pub(crate) const TO_LIST: Self = Self { asked_for: "a list of tools" };
    pub(crate) const TO_CALL: Self = Self { asked_for: "a call" };
}

impl fmt::Display for UnexpectedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the inner service answered {} with something else", self.asked_for)
    }
}

impl error::Error for UnexpectedResponse {}
