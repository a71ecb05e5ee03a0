//! Arguments and `_meta`.

use rmcp::model::{CallToolRequestParams, MetaObject, RequestMetaObject};
use serde_json::{Value, json};
use tower_algenta::{ArgumentScrubLayer, Error, HiddenFields, Matching, Nested, OnHidden};

use super::{cases, the_call, through};
use crate::{
    model::{
        self,
        arguments::{Object, Rules, scrubbed_by, scrubbed_meta_by},
    },
    random::Random,
    support::empty_result,
};

const TOOLS: [&str; 6] =
    ["execute_decision", "simulate", "log_decision", "query_batch", "Execute_Decision", "srv__simulate"];

const KEYS: [&str; 36] = [
    "force",
    "Force",
    "f-o-r-c-e",
    " force ",
    "force\0",
    "f\u{200b}orce",
    "\u{ff46}orce",
    "\u{1d41f}orce",
    "override_safety",
    "overrideSafety",
    "override_\u{17f}afety",
    "overr\u{131}de_safety",
    "overr\u{130}de-safety",
    "$serde_json::private::RawValue",
    "$serde_json::private::Number",
    "com.example/force",
    "com.example/override-safety",
    "force/x",
    "f\u{43e}rce",
    "for\u{e7}e",
    "force\u{301}",
    "enforce",
    "forced",
    "force_majeure",
    "safety",
    "a",
    "b",
    "",
    "metadata",
    "Metadata",
    "decision_id",
    "com.example/force/",
    "com.example\u{ff0f}force",
    "params",
    "result",
    "\u{e4}",
];

/// Pieces of texts that may be JSON to somebody.
const PIECES: [&str; 38] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "'",
    "\\",
    " ",
    "\n",
    "\u{a0}",
    "\u{feff}",
    "1",
    "NaN",
    "true",
    "\"a\"",
    "\"force\"",
    "\"Force\" ",
    "'force'",
    "force",
    "\"\\u0066orce\"",
    "\"forc\\u0065\"",
    "\"\\ud800force\"",
    "\"\\nforce\"",
    "\"force\\t\"",
    "\"for\\/ce\"",
    "\"for\\ce\"",
    "\"override_safety\"",
    "\"overr\\u0131de safety\"",
    "\"\\ud835\\udc1forceless\"",
    "\"\\ud835\\udc1force\"",
    "\"x\":1",
    "\"force\":1",
    "{\"force\":1}",
    "{\"a\":2}",
    "\"a\\\"force\":",
    "\u{e9}\\u00",
];

struct Arguments(Random);

impl Arguments {
    fn rules(&mut self) -> Rules {
        use model::{Matching::*, arguments::Nested::*};
        Rules {
            nested: [Contract, Strip, Keep, Refuse][self.0.below(4)],
            matching: [Canonical, Exact][self.0.below(2)],
            refuses: self.0.one_in(4),
        }
    }

    fn object(&mut self, depth: usize) -> Object {
        (0..self.0.below(4)).map(|_| (self.0.pick(&KEYS).to_owned(), self.value(depth))).collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.0.below(if depth == 0 { 6 } else { 10 }) {
            0 => Value::Null,
            1 => json!(9.8),
            2 => json!(u64::MAX),
            3 | 4 => Value::String(self.text()),
            5 => json!("force"),
            6 => (0..self.0.below(3)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    /// JSON, JSON with something wrong, or a heap of pieces.
    fn text(&mut self) -> String {
        let mut text = match self.0.below(3) {
            0 => (0..self.0.below(12)).map(|_| self.0.pick(&PIECES)).collect(),
            1 => {
                let members: Vec<_> = (0..self.0.below(4))
                    .map(|_| {
                        let key = if self.0.one_in(2) {
                            self.0.pick(&PIECES[16..31]).to_owned()
                        } else {
                            json!(self.0.pick(&KEYS)).to_string()
                        };
                        format!("{key}:{}", self.0.pick(&["1", "NaN", "{\"force\":2}", "[]", "\"x", "\"{}\""]))
                    })
                    .collect();
                format!("{{{}}}", members.join(","))
            }
            _ => Value::Object(self.object(2)).to_string(),
        };
        if self.0.one_in(4) {
            text.insert_str(0, self.0.pick(&[" ", "\n\t", "[", "\u{a0}", "\u{feff}", "\0", "\u{1f}", "x"]));
        }
        if self.0.one_in(6) {
            text.push_str(self.0.pick(&["]", "}", " ", "x", "\"force\":"]));
        }
        text
    }
}

/// What a text argument holds, for those that were written anew.
#[track_caller]
fn decoded(arguments: &Object, keys: &[String]) -> Object {
    let mut arguments = arguments.clone();
    for key in keys {
        let text = arguments[key].as_str().unwrap_or_else(|| panic!("{key} was a text"));
        arguments[key] = serde_json::from_str(text).unwrap();
    }
    arguments
}

/// A layer by the same rules.
fn layer(rules: Rules) -> ArgumentScrubLayer {
    let fields = HiddenFields::new()
        .nested(match rules.nested {
            model::arguments::Nested::Contract => Nested::Contract,
            model::arguments::Nested::Strip => Nested::Strip,
            model::arguments::Nested::Keep => Nested::Keep,
            model::arguments::Nested::Refuse => Nested::Refuse,
        })
        .matching(match rules.matching {
            model::Matching::Canonical => Matching::Canonical,
            model::Matching::Exact => Matching::Exact,
        })
        .on_hidden(if rules.refuses { OnHidden::Refuse } else { OnHidden::Strip });
    ArgumentScrubLayer::new().hidden_fields(fields)
}

#[track_caller]
fn compare(tool: &str, arguments: &Object) {
    compare_by(Rules::default(), tool, arguments);
}

#[track_caller]
fn compare_by(rules: Rules, tool: &str, arguments: &Object) -> bool {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
    let (answer, received) = through(&layer(rules), params, || Ok(empty_result()));
    match (scrubbed_by(rules, tool, arguments), answer) {
        (None, Err(Error::InvalidArguments(_))) => {
            assert!(received.is_empty());
            false
        }
        (Some(expected), Ok(_)) => {
            let actual = the_call(received).arguments.unwrap();
            assert_eq!(
                decoded(&actual, &expected.rewritten),
                expected.arguments,
                "{rules:?}, {tool} with {}",
                Value::Object(arguments.clone())
            );
            true
        }
        (expected, answer) => {
            panic!("{rules:?}, {tool} with {}: {expected:?}, but {answer:?}", Value::Object(arguments.clone()))
        }
    }
}

#[test]
fn arguments_arrive_as_in_the_model() {
    let mut random = Arguments(Random::new(0x005e_ed01));
    for _ in 0..cases() {
        let tool = random.0.pick(&TOOLS);
        let mut arguments = random.object(3);
        if random.0.one_in(3) {
            arguments.insert("payload".to_owned(), Value::String(random.text()));
        }
        compare(tool, &arguments);
    }
}

#[test]
fn meta_arrives_as_in_the_model() {
    let mut random = Arguments(Random::new(0x005e_ed02));
    for case in 0..cases() / 3 {
        let meta = random.object(3);
        let rules = if case % 2 == 0 { Rules::default() } else { random.rules() };
        let mut params = CallToolRequestParams::new(random.0.pick(&TOOLS).to_owned());
        params.meta = Some(RequestMetaObject(MetaObject(meta.clone())));
        let (answer, received) = through(&layer(rules), params, || Ok(empty_result()));
        match (scrubbed_meta_by(rules, &meta), answer) {
            (Some(expected), Ok(_)) => {
                let actual = the_call(received).meta.unwrap().0.0;
                assert_eq!(actual, expected, "{rules:?}, {}", Value::Object(meta));
            }
            (None, Err(Error::InvalidArguments(_))) => assert!(received.is_empty()),
            (expected, answer) => panic!("{rules:?}, {}: {expected:?}, but {answer:?}", Value::Object(meta)),
        }
    }
}

#[test]
fn the_knobs_turn_as_in_the_model() {
    let mut random = Arguments(Random::new(0x005e_ed08));
    let mut arrived = [0; 4];
    for _ in 0..cases() {
        let (tool, rules) = (random.0.pick(&TOOLS), random.rules());
        let mut arguments = random.object(3);
        if random.0.one_in(3) {
            let name = random.0.pick(&["payload", "metadata", "decision_id"]);
            arguments.insert(name.to_owned(), Value::String(random.text()));
        }
        arrived[rules.nested as usize] += usize::from(compare_by(rules, tool, &arguments));
    }
    assert!(arrived.iter().all(|count| count * 20 > cases()), "{arrived:?}");
    assert!(arrived.iter().sum::<usize>() * 10 < cases() * 9, "some are refused: {arrived:?}");
}

/// Every character that could stand for one of a name's letters, or beside them.
#[test]
fn single_characters_fold_as_in_the_model() {
    let fields = HiddenFields::new();
    // Ideographs and syllables between these fold to nothing but themselves.
    let chars = (0..0x3400).chain(0xa000..0xac00).chain(0xf900..0x1_0000).chain(0x1_d000..0x2_0000);
    for c in chars.chain(0xe_0000..0xe_0200).filter_map(char::from_u32) {
        let around = [format!("for{c}ce")];
        let instead = "foverridesaty".chars().filter(|letter| model::canonical(&c.to_string()).starts_with(*letter));
        let instead = instead.flat_map(|l| ["force", "override_safety"].map(|name| name.replace(l, &c.to_string())));
        for key in around.into_iter().chain(instead) {
            assert_eq!(fields.hides(&key), model::is_hidden(&key), "{key:?}");
        }
    }
}

/// What the differential test found, and what to find again.
#[test]
fn cases_that_once_differed() {
    // With numbers of any precision the parser has keys of its own; the name in single quotes is a string's.
    let text = json!({"payload": " {\"n\": 9.8, \"b\": \"{'force': 1}\"}"}).as_object().unwrap().clone();
    compare("query_batch", &text);
    assert_eq!(model::arguments::scrubbed("query_batch", &text).unwrap().arguments, text);

    for text in [
        // An escape for white space is no letter: Python reads this, strict parsers don't.
        "{\"\\nforce\": NaN}",
        "{\"force\\t\": NaN}",
        "{\"override\\u000asafety\": NaN}",
        // Nor is one that breaks off, or that only JavaScript knows.
        "{\"\\uforce\": NaN}",
        "{'\\x66orce': 1}",
        "{'force\\0': 1}",
    ] {
        compare("query_batch", &json!({"payload": text}).as_object().unwrap().clone());
        let refused = model::arguments::scrubbed("query_batch", json!({"payload": text}).as_object().unwrap());
        assert_eq!(refused, None, "{text}");
    }
}
