//! What the members of a schema are.

use super::super::HiddenFields;
use rmcp::model::JsonObject;
use serde_json::Value;

/// A member of a schema, by how its value is walked. One table for the look, the analysis and the rewriting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    /// `properties`: the keys are property names, the values schemas.
    Properties,
    /// `patternProperties`.
    PatternProperties,
    /// `$defs`, `definitions`: the keys are not property names.
    Definitions,
    /// `dependentSchemas`.
    DependentSchemas,
    /// `dependencies` of draft 7, whose values are lists of names or schemas.
    Dependencies,
    /// `dependentRequired`.
    DependentRequired,
    /// `required`, Gemini's `propertyOrdering` and forms' `ui:order`: a list of property names.
    Names,
    /// `propertyNames`.
    PropertyNames,
    /// `pattern`.
    Pattern,
    /// `allOf`, `anyOf`: what stays true when a branch gets looser.
    Branches,
    /// `oneOf`.
    OneOf,
    /// `not`.
    Not,
    /// `if`.
    If,
    /// `then`, `else`.
    ThenElse,
    /// `additionalProperties`.
    AdditionalProperties,
    /// `unevaluatedProperties`, `unevaluatedItems`: these see what the schemas beside and below them have evaluated.
    Unevaluated,
    /// `items`, `prefixItems`, `additionalItems`.
    Items,
    /// `contains`.
    Contains,
    /// `contentSchema`.
    ContentSchema,
    /// `maxContains`.
    MaxContains,
    /// `minProperties`.
    MinProperties,
    /// `maxProperties`.
    MaxProperties,
    /// `uniqueItems`.
    UniqueItems,
    /// `const`.
    Const,
    /// `enum`.
    Enum,
    /// `default`, `examples`: values that show how the tool is used.
    Shown,
    /// `title`, `description`, editors' `markdownDescription`, `$comment`.
    Prose,
    /// `$ref`, `$dynamicRef`, `$recursiveRef`.
    Reference,
    /// `discriminator`, of `OpenAPI`.
    Discriminator,
    /// Anything else; an object or array there is walked as if it held schemas, since a `$ref` may point into it.
    Other,
}

impl Keyword {
    pub(super) fn of(key: &str) -> Self {
        match key {
            "properties" => Self::Properties,
            "patternProperties" => Self::PatternProperties,
            "$defs" | "definitions" => Self::Definitions,
            "dependentSchemas" => Self::DependentSchemas,
            "dependencies" => Self::Dependencies,
            "dependentRequired" => Self::DependentRequired,
            "required" | "propertyOrdering" | "ui:order" => Self::Names,
            "propertyNames" => Self::PropertyNames,
            "pattern" => Self::Pattern,
            "allOf" | "anyOf" => Self::Branches,
            "oneOf" => Self::OneOf,
            "not" => Self::Not,
            "if" => Self::If,
            "then" | "else" => Self::ThenElse,
            "additionalProperties" => Self::AdditionalProperties,
            "unevaluatedProperties" | "unevaluatedItems" => Self::Unevaluated,
            "items" | "prefixItems" | "additionalItems" => Self::Items,
            "contains" => Self::Contains,
            "contentSchema" => Self::ContentSchema,
            "maxContains" => Self::MaxContains,
            "minProperties" => Self::MinProperties,
            "maxProperties" => Self::MaxProperties,
            "uniqueItems" => Self::UniqueItems,
            "const" => Self::Const,
            "enum" => Self::Enum,
            "default" | "examples" | "example" => Self::Shown,
            "title" | "description" | "markdownDescription" | "$comment" => Self::Prose,
            "$ref" | "$dynamicRef" | "$recursiveRef" => Self::Reference,
            "discriminator" => Self::Discriminator,
            _ => Self::Other,
        }
    }

    /// Whether the value must be an object whose members are walked one by one. In another shape it could name
    /// properties in ways that the walk doesn't know.
    pub(super) const fn is_map(self) -> bool {
        matches!(
            self,
            Self::Properties
                | Self::PatternProperties
                | Self::Definitions
                | Self::DependentSchemas
                | Self::Dependencies
                | Self::DependentRequired
        )
    }
}

/// Whether the schema accepts everything, so that it closes nothing.
pub(super) fn accepts_all(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Whether all elements of an array that `schema` accepts are scalars, which no scrub changes.
pub(super) fn has_scalar_items(schema: &JsonObject) -> bool {
    let is_scalar = |name: &Value| matches!(name.as_str(), Some("string" | "number" | "integer" | "boolean" | "null"));
    !schema.contains_key("prefixItems")
        && schema.get("items").and_then(|items| items.get("type")).is_some_and(|kind| match kind {
            Value::Array(names) => names.iter().all(is_scalar),
            name => is_scalar(name),
        })
}

/// Whether `value` is a container, or holds one.
pub(super) fn holds_object(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_object),
        value => value.is_object(),
    }
}

/// The value that the JSON pointer of a reference leads to, percent-encoding decoded.
///
/// `serde_json`'s own `pointer` allocates for every segment.
pub(super) fn resolve<'a>(root: &'a JsonObject, pointer: &str) -> Option<Place<'a>> {
    if pointer.is_empty() {
        return Some(Place::Object(root));
    }
    let mut place = Place::Object(root);
    for segment in pointer.strip_prefix('/')?.split('/') {
        let value = match place {
            Place::Object(members) => match plain(segment) {
                Some(segment) => members.get(segment),
                None => members.get(&decode(segment)?),
            },
            Place::Other(Value::Array(items)) => segment.parse::<usize>().ok().and_then(|index| items.get(index)),
            Place::Other(_) => None,
        }?;
        place = match value {
            Value::Object(members) => Place::Object(members),
            value => Place::Other(value),
        };
    }
    Some(place)
}

/// Where a reference leads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Object(&'a JsonObject),
    Other(&'a Value),
}

fn plain(segment: &str) -> Option<&str> {
    (!segment.contains(['~', '%'])).then_some(segment)
}

/// Decodes one segment of a JSON pointer in a URI fragment.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        bytes.push(match (byte, rest) {
            (b'%', [high, low, tail @ ..]) => {
                rest = tail;
                u8::try_from(hex(*high)? << 4 | hex(*low)?).ok()?
            }
            _ => *byte,
        });
    }
    Some(String::from_utf8(bytes).ok()?.replace("~1", "/").replace("~0", "~"))
}

fn hex(digit: u8) -> Option<u32> {
    char::from(digit).to_digit(16)
}

impl HiddenFields {
    /// Whether a reference goes by way of a hidden property.
    pub(super) fn hides_on_the_way(&self, reference: &str) -> bool {
        let Some((_, pointer)) = reference.split_once('#') else { return false };
        let mut names = false;
        pointer.split('/').any(|segment| {
            let hidden = names
                && match plain(segment) {
                    Some(segment) => self.hides(segment),
                    None => decode(segment).is_some_and(|segment| self.hides(&segment)),
                };
            // The name under `properties` may itself be called `properties`.
            names = !names && matches!(segment, "properties" | "dependentSchemas" | "dependencies");
            hidden
        })
    }

    /// Whether a hidden key stands in `value`, at any depth.
    pub(super) fn holds_hidden(&self, value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(|item| self.holds_hidden(item)),
            Value::Object(members) => members.iter().any(|(key, value)| self.hides(key) || self.holds_hidden(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    /// A copy of `value` without hidden keys, at any depth.
    pub(super) fn without_hidden(&self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.without_hidden(item)).collect(),
            Value::Object(members) => members
                .iter()
                .filter(|(key, _)| !self.hides(key))
                .map(|(key, value)| (key.clone(), self.without_hidden(value)))
                .collect(),
            value => value.clone(),
        }
    }

    /// Whether `value` is a string that names a hidden field.
    pub(super) fn is_hidden_name(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|name| self.hides(name))
    }

    /// Whether `value`, a list of names or one name, names a hidden field.
    pub(super) fn lists_hidden(&self, value: &Value) -> bool {
        match value {
            Value::Array(names) => names.iter().any(|name| self.is_hidden_name(name)),
            name => self.is_hidden_name(name),
        }
    }
}
