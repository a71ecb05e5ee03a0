use proptest::prelude::*;
use rmcp::model::JsonObject;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::*;
use crate::outcome::{object::Object, tape::Written};

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
        let parsed: JsonObject = serde_json::from_str(&text[..end]).expect("a plain object parses");
        reads_as(tape.over(&text[..end]), &parsed);
    }
}

#[track_caller]
fn reads_as(written: Written<'_>, parsed: &JsonObject) {
    let (object, text) = (Object::Written(written), written.text());
    let mut len = 0;
    object.any(|_, _| {
        len += 1;
        false
    });
    assert_eq!(len, parsed.len(), "{text}");
    assert_eq!(object.is_empty(), parsed.is_empty(), "{text}");
    assert!(!object.any(|key, item| parsed.get(key) != Some(&*item.to_parsed())), "{text}");
    for (key, value) in parsed {
        let item = object.get(key).expect(key);
        assert_eq!(item.as_str().as_deref(), value.as_str(), "{text}");
        assert_eq!((item.as_u64(), item.as_bool()), (value.as_u64(), value.as_bool()), "{text}");
        let kinds = (value.is_null(), value.is_number(), value.is_string());
        assert_eq!((item.is_null(), item.is_number(), item.is_string()), kinds, "{text}");
        assert_eq!(object.sole(key).is_some(), parsed.len() == 1, "{text}");
        if let Some(string) = value.as_str() {
            // Found again where it stands, unless it is spelled otherwise there.
            let (place, is_spelled) = (item.plain_string(), text.contains(&format!("\"{string}\"")));
            assert!(place == Span::NONE || place.of(text) == string, "{text}");
            assert!(place != Span::NONE || !is_spelled || string.contains('\\'), "{text}");
        }
        match (written.under(key), value) {
            (Some(inner), Value::Object(value)) => reads_as(inner, value),
            (inner, value) => assert!(inner.is_none() && !value.is_object(), "{text}"),
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
    // Back from the deep, and there again in other containers.
    agrees(
        &("{\"a\":".repeat(30)
            + "1"
            + &"}".repeat(20)
            + ",\"b\":"
            + &"[".repeat(25)
            + &"]".repeat(25)
            + &"}".repeat(10)),
    );
}

/// What stands in the text is one byte off, at every byte.
#[test]
fn a_text_that_is_one_byte_off_is_read_as_by_serde_json() {
    let pieces = r#"{}[]",:\ 01-.eEu"#;
    for text in [
        r#"{"a":[1,-0.5,{"b":null,"c":"\u00e9\n\uFFFD"},[],{}],"c":true , "d":false,"e":"\"{"}"#,
        r#"{"a":[[],[{}],{"b":[]}],"b":{"c":{}},"d":{"c":[2,{"c":"\/"}],"e":{"f":-1,"g":10}},"h":[[0]]}"#,
        r#"{"plain":"a","none":null,"yes":true,"sub":{"sub":{"text":"\t\u00e9\uFFFD","count":18446744073709551615}}}"#,
    ] {
        agrees(text);
        for at in 1..text.len() {
            agrees(&[&text[..at], &text[at + 1..]].concat());
            for piece in pieces.chars() {
                let piece = piece.encode_utf8(&mut [0; 4]).to_owned();
                agrees(&[&text[..at], &piece, &text[at..]].concat());
                agrees(&[&text[..at], &piece, &text[at + 1..]].concat());
            }
        }
    }
}

/// A string of any length is plain up to the first byte that is special, wherever that stands.
#[test]
fn a_string_is_plain_up_to_the_first_special_byte() {
    let len = |bytes: &[u8]| bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' ')).unwrap_or(bytes.len());
    for filler in [b' ', b'!', b'#', b'[', b']', b'a', 0x7f, 0x80, 0xa0, 0xa2, 0xdc, 0xff] {
        for size in [0, 1, 7, 8, 9, 63, 64, 65, 80] {
            let mut text = vec![filler; size];
            assert_eq!(plain_len(&text), size);
            for at in 0..size {
                for byte in 0..=u8::MAX {
                    text[at] = byte;
                    assert_eq!(plain_len(&text), len(&text), "{byte:#x} at {at} of {size}");
                }
                text[at] = filler;
            }
        }
    }
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
        &format!("{{\"a\":-{}}}", "9".repeat(NUMBER_LIMIT)),
        &("{\"a\":".repeat(16) + "1" + &"}".repeat(16)),
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
        &format!("{{\"a\":{}}}", "9".repeat(NUMBER_LIMIT + 1)),
        &format!("{{{}}}", (0..33).map(|key| format!("\"k{key}\":1")).collect::<Vec<_>>().join(",")),
        &("{\"a\":".repeat(17) + "1" + &"}".repeat(17)),
        &("{\"a\":".repeat(200) + "1" + &"}".repeat(200)),
        &format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200)),
    ] {
        assert!(!is_plain(text), "{text}");
    }
}
