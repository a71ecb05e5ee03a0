//! The look that comes first: whether a schema names a hidden field, and whether it can be walked at all.
//!
//! A clean schema, which is nearly every one, costs this one pass and no allocation. All recursion after it is bounded
//! by what it measured.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{
    super::HiddenFields,
    Kind, SchemaError,
    keyword::{Keyword, Place, resolve},
    pattern::Spells,
};
use crate::json::{DEPTH_LIMIT, any};

/// References that are followed from all `propertyNames` together.
const REFERENCES: usize = 256;

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// A hidden name stands where a property is named.
    pub(super) names: bool,
    /// A text uses a hidden field as an identifier.
    pub(super) prose: bool,
}

impl Found {
    pub(super) const fn is_clean(self) -> bool {
        !self.names && !self.prose
    }
}

/// What a value that is walked as a schema is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Area {
    Schema,
    /// Perhaps one: the value of an unknown keyword. Nothing there is malformed.
    Unknown,
}

impl HiddenFields {
    /// Looks at all of `schema`.
    pub(super) fn look_at_schema(&self, schema: &JsonObject) -> Result<Found, SchemaError> {
        let mut look = Look {
            fields: self,
            root: schema,
            values: super::VALUE_LIMIT,
            references: REFERENCES,
            found: Found::default(),
        };
        look.schema(schema, Area::Schema, DEPTH_LIMIT)?;
        Ok(look.found)
    }
}

struct Look<'a> {
    fields: &'a HiddenFields,
    root: &'a JsonObject,
    /// Values that may still be met.
    values: usize,
    /// References that may still be followed.
    references: usize,
    found: Found,
}

impl Look<'_> {
    fn schema(&mut self, schema: &JsonObject, area: Area, levels: usize) -> Result<(), SchemaError> {
        let levels = self.enter(levels, schema.len())?;
        for (key, value) in schema {
            let keyword = Keyword::of(key);
            match (keyword, value) {
                (Keyword::Other, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                    self.found.names |= self.fields.hides(key);
                }
                (Keyword::Other, value) => {
                    self.found.names |= self.fields.hides(key);
                    self.subschema(value, Area::Unknown, levels)?;
                }
                (Keyword::Properties | Keyword::DependentSchemas, Value::Object(members)) => {
                    let levels = self.enter(levels, members.len())?;
                    for (name, value) in members {
                        self.found.names |= self.fields.hides(name);
                        self.subschema(value, area, levels)?;
                    }
                }
                (Keyword::PatternProperties, Value::Object(members)) => {
                    let levels = self.enter(levels, members.len())?;
                    for (pattern, value) in members {
                        self.found.names |= self.fields.spelled_by(pattern) != Spells::Nothing;
                        self.subschema(value, area, levels)?;
                    }
                }
                (Keyword::Definitions, Value::Object(members)) => {
                    let levels = self.enter(levels, members.len())?;
                    for value in members.values() {
                        self.subschema(value, area, levels)?;
                    }
                }
                (Keyword::Dependencies | Keyword::DependentRequired, Value::Object(members)) => {
                    let levels = self.enter(levels, members.len())?;
                    for (name, value) in members {
                        self.found.names |= self.fields.hides(name) || self.fields.lists_hidden(value);
                        self.subschema(value, area, levels)?;
                    }
                }
                (keyword, Value::Array(_) | Value::String(_)) if keyword.is_map() && area == Area::Schema => {
                    return Err(SchemaError { kind: Kind::Malformed });
                }
                (Keyword::Names, value) => {
                    self.found.names |= self.fields.lists_hidden(value);
                    self.data(value, levels)?;
                }
                (Keyword::PropertyNames, value) => {
                    self.found.names |= self.restricts_hidden(value, levels)?;
                    self.subschema(value, area, levels)?;
                }
                (Keyword::Const | Keyword::Enum | Keyword::Shown, value) => self.data(value, levels)?,
                (Keyword::Discriminator, value) => {
                    self.found.names |= value.get("propertyName").is_some_and(|name| self.fields.is_hidden_name(name));
                    // The keys of its `mapping` are values.
                    let names = self.found.names;
                    self.data(value, levels)?;
                    self.found.names = names;
                }
                (Keyword::Prose, Value::String(text)) => self.found.prose |= self.fields.is_mentioned(text),
                (Keyword::Reference, Value::String(reference)) => {
                    self.found.names |= self.fields.hides_on_the_way(reference);
                }
                (_, value) => self.subschema(value, area, levels)?,
            }
        }
        Ok(())
    }

    /// A value where a schema is expected. An array holds several.
    fn subschema(&mut self, value: &Value, area: Area, levels: usize) -> Result<(), SchemaError> {
        match value {
            Value::Array(items) => {
                let levels = self.enter(levels, items.len())?;
                items.iter().try_for_each(|item| self.subschema(item, area, levels))
            }
            Value::Object(schema) => self.schema(schema, area, levels),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// A value that stands for a call's arguments, or for a part of them.
    fn data(&mut self, value: &Value, levels: usize) -> Result<(), SchemaError> {
        match value {
            Value::Array(items) => {
                let levels = self.enter(levels, items.len())?;
                items.iter().try_for_each(|item| self.data(item, levels))
            }
            Value::Object(members) => {
                let levels = self.enter(levels, members.len())?;
                members.iter().try_for_each(|(key, value)| {
                    self.found.names |= self.fields.hides(key);
                    self.data(value, levels)
                })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// Whether `schema`, which property names are checked against, names a hidden field.
    ///
    /// References are followed here, and here alone: elsewhere the strings of the same definition would be data. What
    /// the reference leads to may not be measured yet, so levels are counted on this way too.
    fn restricts_hidden(&mut self, schema: &Value, levels: usize) -> Result<bool, SchemaError> {
        let levels = self.enter(levels, 0)?;
        match schema {
            Value::Array(items) => any(items, |item| self.restricts_hidden(item, levels)),
            Value::Object(schema) => self.object_restricts_hidden(schema, levels),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(false),
        }
    }

    fn object_restricts_hidden(&mut self, schema: &JsonObject, levels: usize) -> Result<bool, SchemaError> {
        any(schema, |(key, value)| match (Keyword::of(key), value) {
            (Keyword::Const, name) => Ok(self.fields.is_hidden_name(name)),
            (Keyword::Enum, Value::Array(names)) => Ok(names.iter().any(|name| self.fields.is_hidden_name(name))),
            (Keyword::Pattern, Value::String(pattern)) => Ok(self.fields.spelled_by(pattern) != Spells::Nothing),
            (Keyword::Branches | Keyword::OneOf | Keyword::Not | Keyword::If | Keyword::ThenElse, value) => {
                self.restricts_hidden(value, levels)
            }
            (Keyword::Reference, Value::String(reference)) => {
                match reference.strip_prefix('#').and_then(|pointer| resolve(self.root, pointer)) {
                    None => Ok(false),
                    Some(place) => {
                        self.references = self.references.checked_sub(1).ok_or(SchemaError { kind: Kind::TooLarge })?;
                        let levels = self.enter(levels, 0)?;
                        match place {
                            Place::Object(target) => self.object_restricts_hidden(target, levels),
                            Place::Other(target) => self.restricts_hidden(target, levels),
                        }
                    }
                }
            }
            _ => Ok(false),
        })
    }

    /// Counts a container of `len` values and gives the levels that are left inside it.
    fn enter(&mut self, levels: usize, len: usize) -> Result<usize, SchemaError> {
        self.values = self.values.checked_sub(len).ok_or(SchemaError { kind: Kind::TooLarge })?;
        levels.checked_sub(1).ok_or(SchemaError { kind: Kind::TooDeep })
    }
}
