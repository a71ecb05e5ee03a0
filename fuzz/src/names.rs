//! What a schema names and refers to: walks that share nothing with the crate's.

use serde_json::Value;

use crate::model::{is_hidden, spells_a_switch};

/// Whether a switch stands in `schema` where a property is named.
pub(crate) fn names_a_switch(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(names_a_switch),
        Value::Object(members) => members.iter().any(|(keyword, value)| keyword_names_a_switch(keyword, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn keyword_names_a_switch(keyword: &str, value: &Value) -> bool {
    match (keyword, value) {
        ("properties" | "dependentSchemas", Value::Object(members)) => {
            members.iter().any(|(name, value)| is_hidden(name) || names_a_switch(value))
        }
        ("dependentRequired" | "dependencies", Value::Object(members)) => {
            members.iter().any(|(name, value)| is_hidden(name) || lists_a_switch(value) || names_a_switch(value))
        }
        ("patternProperties", Value::Object(members)) => {
            members.iter().any(|(pattern, value)| is_hidden_pattern(pattern) || names_a_switch(value))
        }
        // Names for schemas, which are no properties.
        ("$defs" | "definitions", Value::Object(members)) => members.values().any(names_a_switch),
        ("required", value) => lists_a_switch(value),
        ("propertyNames", value) => admits_a_switch(value) || names_a_switch(value),
        (data, value) if is_data(data) => holds_a_switch(value),
        (_, value) => names_a_switch(value),
    }
}

fn lists_a_switch(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().filter_map(Value::as_str).any(is_hidden))
}

fn is_hidden_pattern(pattern: &str) -> bool {
    spells_a_switch(pattern.trim_start_matches('^').trim_end_matches('$'))
}

/// Whether a schema of names has one of a switch.
fn admits_a_switch(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(admits_a_switch),
        Value::Object(members) => members.iter().any(|(keyword, value)| match (keyword.as_str(), value) {
            ("const", Value::String(name)) => is_hidden(name),
            ("enum", value) => lists_a_switch(value),
            ("pattern", Value::String(pattern)) => is_hidden_pattern(pattern),
            // Of what looks inside a value, a name has nothing.
            ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else", value) => admits_a_switch(value),
            _ => false,
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a value has a switch among its keys.
fn holds_a_switch(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_a_switch),
        Value::Object(members) => members.iter().any(|(key, value)| is_hidden(key) || holds_a_switch(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The references of `schema` into itself that lead nowhere.
pub(crate) fn dangling(schema: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    references(schema, &mut found);
    found.retain(|reference| match reference.strip_prefix('#') {
        Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => schema.pointer(pointer).is_none(),
        Some(anchor) => !has_anchor(schema, anchor),
        None => false,
    });
    found
}

fn references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            // In an example, a constant or a list of names a reference is none.
            let schemas = members.iter().filter(|(keyword, _)| !is_data(keyword) && !holds_no_schema(keyword));
            schemas.for_each(|(_, value)| references(value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn has_anchor(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(|item| has_anchor(item, name)),
        Value::Object(members) => {
            members.get("$anchor").is_some_and(|anchor| anchor == name)
                || members.values().any(|value| has_anchor(value, name))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn holds_no_schema(keyword: &str) -> bool {
    matches!(keyword, "required" | "dependentRequired" | "type" | "pattern" | "title" | "description")
}

fn is_data(keyword: &str) -> bool {
    matches!(keyword, "const" | "enum" | "default" | "examples" | "example")
}
