//! What becomes of a tool's schema: a judgement of the crate's answer, not an answer of its own.
//!
//! Where the design fixes the result, it is rewritten here and compared: what names, lists or holds a switch loses just
//! that, and all else stays as it is, in its order. Where it leaves freedom, the model says what must be gone, what must
//! stay and what may be looser: a `oneOf`, `not` or `if` that names a switch must be weakened, one that neither counts
//! nor closes keys, holds no object and refers to nothing must stay, and between the two either will do. Whether a call
//! is wrongly rejected is for `schema_random` to see, which asks a validator; this one sees what is loosened for nothing.

use serde_json::{Map, Value, json};

use super::is_hidden;

type Object = Map<String, Value>;
/// What is wrong with the crate's answer.
type Judgement = Result<(), String>;

/// Keywords whose value is one schema.
const SINGLE: [&str; 12] = [
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "contentSchema",
];
/// Keywords whose value is a list of schemas; `items` was one in older drafts.
const LISTS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value is an object of schemas, by names of properties.
const BY_NAME: [&str; 3] = ["properties", "dependentSchemas", "dependencies"];
/// The same, by other names.
const BY_OTHER: [&str; 3] = ["patternProperties", "$defs", "definitions"];
/// Keywords whose value is data.
const DATA: [&str; 4] = ["default", "examples", "const", "enum"];

/// Judges `after`, what the crate made of the schema `before`. `keeps_nested`: what lies below the top level of the
/// arguments is this tool's data.
pub(crate) fn judge(before: &Value, after: &Value, keeps_nested: bool) -> Judgement {
    if !spells_one_somewhere(before) {
        return same(before, after, "a schema that spells no switch");
    }
    if names_a_switch(after) {
        return Err("a switch is still named".to_owned());
    }
    let refers = mentions(before, &|key, _| key == "$ref" || key == "$dynamicRef");
    let is_old = before.get("$schema").is_some();
    Judge { keeps_nested, refers, is_old, before, after }.schema(before, after, Place::Root)
}

/// Whether a switch is the name of a property somewhere in `schema`, or a key in its data.
fn names_a_switch(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    members.iter().any(|(key, value)| {
        let named_below = subschemas(key, value).into_iter().any(names_a_switch);
        let named = match key.as_str() {
            "properties" | "dependentSchemas" | "dependentRequired" | "dependencies" => {
                names(value).any(is_hidden) || members_of(value).any(|(_, value)| lists_a_switch(value))
            }
            "required" => lists_a_switch(value),
            key if DATA.contains(&key) => mentions(value, &|key, _| is_hidden(key)),
            _ => false,
        };
        named || named_below
    })
}

/// The same without what asserts nothing.
fn assertions(schema: &Value) -> Value {
    let asserts = |key: &str| !["default", "examples"].contains(&key) && !key.starts_with("x-");
    match schema {
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| asserts(key))
            .map(|(key, value)| (key.clone(), if DATA.contains(&&**key) { value.clone() } else { assertions(value) }))
            .collect(),
        Value::Array(items) => items.iter().map(assertions).collect(),
        other => other.clone(),
    }
}

/// Whether a call is judged by a switch.
fn asserts_a_switch(schema: &Value) -> bool {
    names_a_switch(&assertions(schema))
}

fn subschemas<'a>(key: &str, value: &'a Value) -> Vec<&'a Value> {
    match value {
        Value::Object(members) if BY_NAME.contains(&key) || BY_OTHER.contains(&key) => members.values().collect(),
        Value::Array(items) if LISTS.contains(&key) => items.iter().collect(),
        Value::Object(_) if SINGLE.contains(&key) => vec![value],
        _ => Vec::new(),
    }
}

fn members_of(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn names(value: &Value) -> impl Iterator<Item = &str> {
    members_of(value).map(|(name, _)| name.as_str())
}

/// Whether a list of names has a switch in it.
fn lists_a_switch(value: &Value) -> bool {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).any(is_hidden)
}

/// Whether a member anywhere in `value` is like this.
fn mentions(value: &Value, like: &dyn Fn(&str, &Value) -> bool) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| like(key, value) || mentions(value, like)),
        Value::Array(items) => items.iter().any(|item| mentions(item, like)),
        _ => false,
    }
}

/// Whether a text anywhere in `value` spells a switch; a pattern or a list of names may.
fn spells_one_somewhere(value: &Value) -> bool {
    // A pattern may write a first letter as a class.
    let spells = |text: &str| ["orce", "verride"].iter().any(|word| text.to_lowercase().contains(word));
    match value {
        Value::String(text) => spells(text),
        Value::Array(items) => items.iter().any(spells_one_somewhere),
        Value::Object(members) => members.iter().any(|(key, value)| spells(key) || spells_one_somewhere(value)),
        _ => false,
    }
}

/// Whether what fewer keys mean to `schema` is plain: more is accepted, not less.
fn is_plain(schema: &Value) -> bool {
    const COUNTS: [&str; 14] = [
        "minProperties",
        "maxProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "patternProperties",
        "unevaluatedItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "$ref",
        "$dynamicRef",
        "x-vendor",
    ];
    let is_object = |value: &Value| value.is_object() || mentions(&json!([value]), &|_, _| true);
    !spells_one_somewhere(schema)
        && !mentions(schema, &|key, value| {
            COUNTS.contains(&key) || matches!(key, "const" | "enum") && (is_object(value) || value.is_array())
        })
}

fn without_switches(value: &Value) -> Value {
    super::text::without_hidden_keys(value)
}

fn same(before: &Value, after: &Value, what: &str) -> Judgement {
    if before == after { Ok(()) } else { Err(format!("{what} changed: {before} became {after}")) }
}

/// What a subschema is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The arguments themselves.
    Root,
    /// What they hold.
    Nested,
    /// Whatever refers to it.
    Definition,
}

impl Place {
    const fn below(self) -> Self {
        match self {
            Self::Root | Self::Nested => Self::Nested,
            Self::Definition => Self::Definition,
        }
    }
}

struct Judge<'a> {
    keeps_nested: bool,
    /// Whether anything refers to anything, so that a subschema may be judged in more places than its own.
    refers: bool,
    /// Whether it is of a draft in which a reference stands alone.
    is_old: bool,
    before: &'a Value,
    after: &'a Value,
}

impl Judge<'_> {
    /// Whether a reference may go: it led to no schema, or to what is gone.
    fn may_lose(&self, reference: &Value) -> bool {
        let leads = |schema: &Value| {
            let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
            let target = pointer.and_then(|pointer| schema.pointer(pointer));
            target.is_some_and(|target| target.is_object() || target.is_boolean())
        };
        !leads(self.before) || !leads(self.after)
    }

    /// Compares a subschema with what became of it.
    fn schema(&self, before: &Value, after: &Value, place: Place) -> Judgement {
        let (Value::Object(old), Value::Object(new)) = (before, after) else {
            return same(before, after, "a schema without keywords");
        };
        // Before draft 2019-09 what stands beside a reference says nothing, and must not begin to when the reference goes.
        let is_emptied = assertions(after) == json!({});
        if old.contains_key("$ref") && self.is_old && is_emptied {
            return ensure(self.may_lose(&old["$ref"]), "a reference that led somewhere is gone");
        }
        let weakened = ["oneOf", "if"].iter().any(|key| old.contains_key(*key) && !new.contains_key(*key));
        for key in new.keys().filter(|key| !old.contains_key(*key)) {
            if !weakened || !["anyOf", "allOf"].contains(&key.as_str()) {
                return Err(format!("{key} is new in {after}"));
            }
        }
        for (key, value) in old {
            self.keyword(key, value, old, new, place).map_err(|error| format!("{key}: {error}"))?;
        }
        Ok(())
    }

    fn keyword(&self, key: &str, value: &Value, old: &Object, new: &Object, place: Place) -> Judgement {
        let after = new.get(key);
        match key {
            "properties" | "dependentSchemas" | "dependencies" => {
                self.by_name(value, after, if key == "properties" { place.below() } else { place })
            }
            "dependentRequired" => self.by_name(value, after, place),
            "required" => Self::list_of_names(value, after),
            "patternProperties" => self.by_other_name(value, after, place.below()),
            "$defs" | "definitions" => self.by_other_name(value, after, Place::Definition),
            "allOf" | "anyOf" => self.list(value, after, place),
            "prefixItems" => self.list(value, after, place.below()),
            "oneOf" => {
                let Some(after) = after else {
                    ensure(!is_plain(value), "it is weakened for nothing")?;
                    return self.weakened(value, new, place);
                };
                self.list(value, Some(after), place)?;
                ensure(!value.as_array().is_some_and(|all| all.iter().any(asserts_a_switch)), "it should be weaker")
            }
            "not" => match after {
                Some(after) => {
                    ensure(!asserts_a_switch(value), "it names a switch")?;
                    same(&assertions(value), &assertions(after), "a negation")
                }
                None => ensure(!is_plain(value), "it is dropped for nothing"),
            },
            "if" => self.condition(old, new, place),
            "then" | "else" if old.contains_key("if") => Ok(()),
            "additionalProperties" | "unevaluatedProperties" => self.closing(value, old, new, key, place),
            // Who knows how many spellings there were.
            "minProperties" => {
                let bound = |value: &Value| value.as_u64().unwrap_or_default();
                ensure(after.map_or(0, bound) <= bound(value), "it is higher")
            }
            "const" | "enum" | "propertyNames" if spells_one_somewhere(value) => Ok(()),
            "default" | "examples" => match after {
                None => ensure(mentions(value, &|key, _| is_hidden(key)), "it is gone"),
                Some(after) => same(&without_switches(value), after, "data"),
            },
            "$dynamicRef" if after.is_none() && old.get("$ref").is_some_and(|other| self.may_lose(other)) => Ok(()),
            "$ref" if after.is_none() => ensure(self.may_lose(value), "a reference that leads somewhere is gone"),
            // Two items may be alike, and more of them fit, once their switches are gone.
            "uniqueItems" | "maxContains" | "minContains" | "contains" if after.is_none() => Ok(()),
            "items" if value.is_array() => self.list(value, after, place.below()),
            // What was evaluated beside it may be gone.
            "unevaluatedItems" if after.is_none() => {
                ensure(!is_plain(&Value::Object(old.clone())), "nothing beside it is gone")
            }
            key if SINGLE.contains(&key) => match after {
                Some(after) => self.schema(value, after, place.below()),
                None => Err("it is gone".to_owned()),
            },
            // Nobody knows what an unknown keyword holds.
            key if key.starts_with("x-") => Ok(()),
            _ => same(value, after.unwrap_or(&Value::Null), "a keyword of another kind"),
        }
    }

    /// Names of properties go with what they lead to; the others stay, in their order.
    fn by_name(&self, before: &Value, after: Option<&Value>, place: Place) -> Judgement {
        let nothing = json!({});
        let after = after.unwrap_or(&nothing);
        let kept: Vec<&str> = names(before).filter(|name| !is_hidden(name)).collect();
        let is_emptied = |name: &str| before[name].is_array() && after.get(name).is_none();
        let kept: Vec<&str> =
            kept.into_iter().filter(|name| !(is_emptied(name) && lists_a_switch(&before[*name]))).collect();
        let found: Vec<&str> = names(after).collect();
        ensure(kept == found, &format!("{found:?} and not {kept:?}"))?;
        kept.into_iter().try_for_each(|name| match &before[name] {
            list @ Value::Array(_) => Self::list_of_names(list, after.get(name)),
            schema => self.schema(schema, &after[name], place),
        })
    }

    /// What refers to nothing any more may be gone, and so may a pattern that spells a switch.
    fn by_other_name(&self, before: &Value, after: Option<&Value>, place: Place) -> Judgement {
        for (name, schema) in members_of(before) {
            match after.and_then(|after| after.get(name)) {
                Some(after) => self.schema(schema, after, place)?,
                None => ensure(spells_one_somewhere(&json!(name)), &format!("{name} is gone"))?,
            }
        }
        ensure(after.is_none_or(|after| names(after).all(|name| before.get(name).is_some())), "one is new")
    }

    fn list_of_names(before: &Value, after: Option<&Value>) -> Judgement {
        let kept: Vec<&Value> =
            before.as_array().into_iter().flatten().filter(|name| !name.as_str().is_some_and(is_hidden)).collect();
        let found: Vec<&Value> = after.and_then(Value::as_array).into_iter().flatten().collect();
        ensure(kept == found, &format!("{found:?} and not {kept:?}"))
    }

    /// One by one; what is weaker now may stand behind them.
    fn list(&self, before: &Value, after: Option<&Value>, place: Place) -> Judgement {
        let old = before.as_array().map(Vec::as_slice).unwrap_or_default();
        let new = after.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        ensure(new.len() >= old.len(), "one is gone")?;
        old.iter().zip(new).try_for_each(|(old, new)| self.schema(old, new, place))
    }

    /// What was a `oneOf` is an `anyOf` somewhere.
    fn weakened(&self, alternatives: &Value, new: &Object, place: Place) -> Judgement {
        let in_all =
            new.get("allOf").and_then(Value::as_array).into_iter().flatten().filter_map(|all| all.get("anyOf"));
        let mut candidates = new.get("anyOf").into_iter().chain(in_all);
        let count = alternatives.as_array().map(Vec::len);
        let is_it = |candidate: &Value| {
            candidate.as_array().map(Vec::len) == count && self.list(alternatives, Some(candidate), place).is_ok()
        };
        ensure(candidates.any(is_it), "its alternatives are gone")
    }

    fn condition(&self, old: &Object, new: &Object, place: Place) -> Judgement {
        let branches: Vec<&Value> = ["then", "else"].iter().filter_map(|key| old.get(*key)).collect();
        if let Some(after) = new.get("if") {
            ensure(!asserts_a_switch(&old["if"]), "it names a switch")?;
            same(&assertions(&old["if"]), &assertions(after), "a condition")?;
            return ["then", "else"].iter().try_for_each(|key| match (old.get(*key), new.get(*key)) {
                (Some(old), Some(new)) => self.schema(old, new, place),
                (None, None) => Ok(()),
                _ => Err(format!("{key} is gone")),
            });
        }
        let all_plain = branches.iter().chain([&&old["if"]]).all(|schema| is_plain(schema));
        ensure(!all_plain, "it is weakened for nothing")?;
        // Draft 4 has no conditions, so these say nothing.
        if self.before["$schema"].as_str().is_some_and(|draft| draft.contains("draft-04")) {
            return Ok(());
        }
        // One branch alone, or one that accepts anything, is no more than anything.
        let accepts_all = |branch: &&Value| **branch == json!(true) || self.schema(branch, &json!({}), place).is_ok();
        let is_vacuous = branches.len() < 2 || branches.iter().any(accepts_all);
        if is_vacuous { Ok(()) } else { self.weakened(&json!(branches), new, place) }
    }

    /// What closes an object stays, unless its keys are data and a name of it is gone.
    fn closing(&self, value: &Value, old: &Object, new: &Object, key: &str, place: Place) -> Judgement {
        let has_lost = names_a_switch(&Value::Object(old.clone())) || spells_one_somewhere(&Value::Object(old.clone()));
        let lost_here = names(&old.get("properties").cloned().unwrap_or_default()).any(is_hidden);
        if let Some(after) = new.get(key) {
            let is_harmful = self.keeps_nested && place == Place::Nested && lost_here && *value == json!(false);
            ensure(!is_harmful, "it closes what lost a name")?;
            return self.schema(value, after, place.below());
        }
        // What was evaluated by a schema that is gone is not any more.
        let was_evaluated = |(other, value): (&String, &Value)| {
            other != "properties" && !subschemas(other, value).is_empty() && !is_plain(&json!({other: value}))
        };
        let lost_evaluation = key == "unevaluatedProperties" && old.iter().any(was_evaluated);
        ensure(has_lost || self.refers || lost_evaluation, "it is gone, and nothing that it closes")?;
        let lost_pattern = names(&old.get("patternProperties").cloned().unwrap_or_default())
            .any(|pattern| new.get("patternProperties").is_none_or(|new| new.get(pattern).is_none()));
        let may_be_open = self.refers || lost_pattern || lost_evaluation;
        ensure(place != Place::Root || may_be_open, "the arguments' own keys are open")
    }
}

fn ensure(holds: bool, otherwise: &str) -> Judgement {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}
