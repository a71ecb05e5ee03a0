//! In which shape the engine's answers go over the wire.

use std::{error, fmt, io, str::FromStr};

use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode},
};
use serde::Serialize;
use serde_json::{Value, json};

/// How a denial travels: one for each shape that was recorded from a real server.
///
/// Errors of the real server are byte for byte as recorded; the other servers' shapes carry the same words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wire {
    /// `algenta-mcp` from 1.0.28 on: `isError: true`, and the gate inside the *string* `error.message`, beside
    /// `status_code` 409.
    #[default]
    Algenta,
    /// `algenta-mcp` up to 1.0.27: the same with `isError: false`, as is every other error.
    Algenta1_0_27,
    /// A server on the Python SDK that raises: `Error executing tool execute_decision: {…}`.
    PythonSdk,
    /// `FastMCP`: `Error calling tool 'execute_decision': {…}`, and results as `structuredContent` besides the text.
    FastMcp,
    /// A server that returns the denial: `isError: false`, as text and as `structuredContent`, like its results.
    Returned,
    /// As [`Wire::Algenta`], around a REST body `{"detail":{…},"request_id":…}`.
    Detail,
    /// As [`Wire::Algenta`], around a REST body `{"detail":{"error":{…}},"request_id":…}`.
    DetailError,
    /// A JSON-RPC error whose `data` carries the body.
    JsonRpcError,
}

impl Wire {
    /// All shapes.
    pub const ALL: [Self; 8] = [
        Self::Algenta,
        Self::Algenta1_0_27,
        Self::PythonSdk,
        Self::FastMcp,
        Self::Returned,
        Self::Detail,
        Self::DetailError,
        Self::JsonRpcError,
    ];

    /// The shape's name, for a command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Algenta => "algenta",
            Self::Algenta1_0_27 => "algenta-1.0.27",
            Self::PythonSdk => "python-sdk",
            Self::FastMcp => "fastmcp",
            Self::Returned => "returned",
            Self::Detail => "detail",
            Self::DetailError => "detail-error",
            Self::JsonRpcError => "json-rpc-error",
        }
    }

    /// What goes over the wire when the tool that it calls `tool` ends with `answer`.
    pub(super) fn render(self, tool: &str, answer: Answer) -> Result<CallToolResult, ErrorData> {
        match answer {
            Answer::Done { value, text } => Ok(match self {
                // FastMCP's text is compact; the SDK, and the real server, indent by two.
                Self::FastMcp => CallToolResult::structured(value),
                Self::Returned => with_structured(text, value),
                _ => CallToolResult::success(vec![ContentBlock::text(text)]),
            }),
            Answer::Denied(denial) => self.render_denial(tool, &denial),
            Answer::Failed { code, message, status_code, details } => {
                // In the order of the real server's text, also where `serde_json` keeps the order of insertion.
                let mut envelope = json!({"code": code});
                if let Some(details) = details {
                    envelope["details"] = details;
                }
                envelope["message"] = message.into();
                envelope["status_code"] = status_code.into();
                self.error_text(python_json(&json!({"error": envelope}))?)
            }
        }
    }

    fn render_denial(self, tool: &str, denial: &Denial) -> Result<CallToolResult, ErrorData> {
        let error = json!({"error": denial});
        match self {
            Self::Algenta | Self::Algenta1_0_27 => self.api_error(denial, &error),
            Self::Detail => self.api_error(denial, &json!({"detail": denial, "request_id": REQUEST_ID})),
            Self::DetailError => self.api_error(denial, &json!({"detail": error, "request_id": REQUEST_ID})),
            Self::PythonSdk => self.error_text(format!("Error executing tool {tool}: {}", python_json(&error)?)),
            Self::FastMcp => self.error_text(format!("Error calling tool '{tool}': {}", python_json(&error)?)),
            Self::Returned => Ok(with_structured(pretty_json(&error)?, error)),
            Self::JsonRpcError => Err(ErrorData::new(ErrorCode(-32000), "409", Some(error))),
        }
    }

    /// The real server's envelope around what its REST API answered.
    fn api_error(self, denial: &Denial, body: &Value) -> Result<CallToolResult, ErrorData> {
        let message = format!("API error 409: {}", python_json(body)?);
        let envelope = json!({"error": {"code": denial.code, "message": message, "status_code": 409}});
        self.error_text(python_json(&envelope)?)
    }

    #[expect(clippy::unnecessary_wraps, reason = "every arm of the callers ends in a `Result`")]
    fn error_text(self, text: String) -> Result<CallToolResult, ErrorData> {
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.is_error = Some(self != Self::Algenta1_0_27);
        Ok(result)
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Wire {
    type Err = ParseWireError;

    /// Reads a shape's exact name, as [`Wire::as_str`] gives it.
    fn from_str(name: &str) -> Result<Self, ParseWireError> {
        Self::ALL.into_iter().find(|wire| wire.as_str() == name).ok_or(ParseWireError(()))
    }
}

/// The name is not that of a wire shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseWireError(());

impl fmt::Display for ParseWireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown wire shape: expected one of")?;
        for (index, wire) in Wire::ALL.into_iter().enumerate() {
            write!(f, "{} {wire}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl error::Error for ParseWireError {}

/// The id that the recorded REST bodies carry.
const REQUEST_ID: &str = "req_123";

/// How a call of a tool ended, before it has a shape.
#[derive(Debug)]
pub(super) enum Answer {
    /// With a result. The text is made where the type is known, since a [`Value`] forgets the order of fields.
    Done { value: Value, text: String },
    /// At a gate.
    Denied(Denial),
    /// With another error of the real server.
    Failed { code: &'static str, message: String, status_code: u16, details: Option<Value> },
}

impl Answer {
    pub(super) fn done(result: &impl Serialize) -> Result<Self, ErrorData> {
        let value = serde_json::to_value(result).map_err(not_json)?;
        Ok(Self::Done { value, text: pretty_json(result)? })
    }
}

/// The body of a denial, in the order of the recorded ones.
#[derive(Debug, Serialize)]
pub(super) struct Denial {
    pub(super) code: String,
    pub(super) gate: String,
    pub(super) message: String,
    pub(super) override_hint: String,
}

fn with_structured(text: String, value: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(value);
    result
}

fn pretty_json(value: &impl Serialize) -> Result<String, ErrorData> {
    serde_json::to_string_pretty(value).map_err(not_json)
}

/// JSON as Python's `json.dumps` writes it: a blank after each comma and colon.
fn python_json(value: &Value) -> Result<String, ErrorData> {
    let mut text = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, PythonFormatter)).map_err(not_json)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

struct PythonFormatter;

impl serde_json::ser::Formatter for PythonFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn not_json(error: serde_json::Error) -> ErrorData {
    ErrorData::internal_error(format!("the stub's answer is not JSON: {error}"), None)
}
