use proptest::prelude::*;
use rmcp::model::JsonObject;
use serde::de::IgnoredAny;

use super::*;
use crate::outcome::object::Object;

fn by_serde_json(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok().map(|IgnoredAny| values.byte_offset())
}

#[track_caller]
fn agrees(text: &str) {
    let mut open = Open::NONE;
    let mut tape = Tape::new();
    let skipped = match skip_object(text, 0, &mut open, &mut tape) {
        Skipped::Object { end } => Some(end),
        Skipped::Broken { .. } => None,
    };
    assert_eq!(skipped, by_serde_json(text), "{text}");
    if let Some(end) = skipped.filter(|_| tape.is_plain()) {
        let object = Object::Written(tape.over(&text[..end]));
        let parsed: JsonObject = serde_json::from_str(&text[..end]).expect("a plain object parses");
        let mut len = 0;
        object.any(|_, _| {
            len += 1;
            false
        });
        assert_eq!(len, parsed.len(), "{text}");
        assert!(!object.any(|key, item| parsed.get(key) != Some(&*item.to_parsed())), "{text}");
        for (key, value) in &parsed {
            let item = object.get(key).expect(key);
            assert_eq!(item.as_str().as_deref(), value.as_str(), "{text}");
            let inner = object.under(key).map(|inner| inner.to_parsed().into_owned());
            assert_eq!(inner.as_ref(), value.as_object(), "{text}");
            assert_eq!((item.as_u64(), item.as_bool()), (value.as_u64(), value.as_bool()), "{text}");
            let kinds = (value.is_null(), value.is_number(), value.is_string());
            assert_eq!((item.is_null(), item.is_number(), item.is_string()), kinds, "{text}");
        }
    }
}

#[test]
fn every_start_of_an_object_is_read_as_by_serde_json() {
    let text = r#"{"a":[1,-0.5e+3,{"b":null,"\u00e9\n":"\ud800"},[],{}],"c":true , "d":false,"e":"\"{"}"#;
    for end in 1..=text.len() {
        if text.is_char_boundary(end) {
            agrees(&text[..end]);
        }
    }
    for text in [
        "{}",
        "{,}",
        "{\"a\"}",
        "{\"a\":1,}",
        "{\"a\":[1,]}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":-}",
        "{\"a\":1e}",
        "{\"a\":[}",
        "{\"a\":{]}",
        "{\"a\":tru}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":1e999}",
        "{ }",
        "{\u{a0}}",
        "{\"a\" : 1 \r\n}",
        "{'a':1}",
        "{\"a\":[1 2]}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":\"\\u12g4\"}",
    ] {
        agrees(text);
    }
    let long = "é".repeat(40);
    for text in [
        format!("{{\"a\":\"{long}\"}}"),
        format!("{{\"a\":\"{long}\\n{long}\"}}"),
        format!("{{\"a\":\"{long}\n{long}\"}}"),
        format!("{{\"a\":\"{long}"),
    ] {
        agrees(&text);
    }
    agrees(&("{\"a\":".repeat(300) + "1" + &"}".repeat(300)));
}

proptest! {
    #[test]
    fn texts_of_json_like_pieces_too(pieces in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", "\"", ",", ":", "\"a\":", "\"a\":1", "1", "-0", "0.5", "1e5", "null", "true", " ", "\n", "\\",
        "\\u00e9", "\\n", "x", "é", "{\"a\":", "\"\"", "[1,", "\u{1}", "\"b\":\"é\",", "\"a\":{}", "\"snapshot_identifier\":",
    ]), 0..16)) {
        agrees(&("{".to_owned() + &pieces.concat()));
    }
}

#[test]
fn an_error_tells_what_was_open() {
    let mut open = Open::NONE;
    let text = r#"{"a":{"b":{}},"c":[{"d":x"#;
    assert_eq!(skip_object(text, 0, &mut open, &mut Tape::new()), Skipped::Broken { at: text.len() - 1 });
    assert_eq!((0..4).map(|index| open.get(index)).collect::<Vec<_>>(), [Some(0), Some(18), Some(19), None]);
    let deep = "{\"a\":".repeat(40);
    assert_eq!(skip_object(&deep, 0, &mut open, &mut Tape::new()), Skipped::Broken { at: deep.len() });
    assert!((0..40).all(|index| open.get(index) == Some(5 * index)) && open.get(40).is_none());
}

#[test]
fn plain_is_what_every_parser_reads_alike() {
    let is_plain = |text: &str| {
        let (mut open, mut tape) = (Open::NONE, Tape::new());
        let skipped = skip_object(text, 0, &mut open, &mut tape);
        assert_eq!(skipped, Skipped::Object { end: text.len() }, "{text}");
        tape.is_plain()
    };
    for text in [
        r#"{"a":1,"b":{"a":[{"a":"\n\u00e9"},{"a":2}]}}"#,
        "{}",
        r#"{"":-0.5,"é":[],"a$":null}"#,
        &format!("{{{}}}", (0..32).map(|key| format!("\"k{key}\":1")).collect::<Vec<_>>().join(",")),
    ] {
        assert!(is_plain(text), "{text}");
    }
    for text in [
        r#"{"a":1,"\u0062":2}"#,
        r#"{"a":1,"a":1}"#,
        r#"{"b":[{"c":1,"a":1,"c":2}]}"#,
        r#"{"snapshot_identifier":1,"x":[{}],"snapshot_identifier":2}"#,
        r#"{"$serde_json::private::Number":"2"}"#,
        r#"{"a":{"$serde_json::private::RawValue":"2"}}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\uDFFF"}"#,
        r#"{"a":1e999}"#,
        &format!("{{\"a\":{}}}", "9".repeat(400)),
        &format!("{{{}}}", (0..33).map(|key| format!("\"k{key}\":1")).collect::<Vec<_>>().join(",")),
        &("{\"a\":".repeat(200) + "1" + &"}".repeat(200)),
        &format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200)),
    ] {
        assert!(!is_plain(text), "{text}");
    }
}
