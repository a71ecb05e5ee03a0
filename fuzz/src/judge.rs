//! What a schema accepts, by a validator that knows nothing of the crate.

use jsonschema::Validator;
use serde_json::Value;

const DRAFTS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
];

/// Steps that following the references of one schema may take.
const STEPS: usize = 2_000;

/// Whether `schema` is one of a draft that is known.
pub(crate) fn is_valid(schema: &Value) -> bool {
    let is_known = schema.get("$schema").is_none_or(|draft| DRAFTS.iter().any(|known| draft == known));
    is_known && jsonschema::meta::is_valid(schema)
}

/// The validator of a valid schema that it can run to an end on any value; `None` for any other.
pub(crate) fn of(schema: &Value) -> Option<Validator> {
    let ends = ends(schema, schema, &mut Vec::new(), &mut STEPS.clone());
    if ends && is_valid(schema) { jsonschema::validator_for(schema).ok() } else { None }
}

/// Whether references lead somewhere, and never back to where they came from. Names for them are more than this reads.
fn ends<'a>(root: &'a Value, value: &'a Value, open: &mut Vec<&'a str>, steps: &mut usize) -> bool {
    let Some(left) = steps.checked_sub(1) else { return false };
    *steps = left;
    match value {
        Value::Array(items) => items.iter().all(|item| ends(root, item, open, steps)),
        Value::Object(members) => members.iter().all(|(key, value)| match (key.as_str(), value) {
            ("$ref", Value::String(reference)) => {
                let Some(target) = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else {
                    return false;
                };
                if open.contains(&reference.as_str()) {
                    return false;
                }
                open.push(reference);
                let all_end = ends(root, target, open, steps);
                open.pop();
                all_end
            }
            ("$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor" | "$id" | "id", Value::String(_)) => false,
            (_, value) => ends(root, value, open, steps),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
