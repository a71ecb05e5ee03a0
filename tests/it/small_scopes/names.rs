//! All names at edit distance one from the seven of the contract, under each profile, against the model.

use std::collections::BTreeSet;

use rmcp::{
    model::{ListToolsResult, Tool},
    object,
};
use tower_algenta::{GovernanceLayer, Profile, ToolRequest, ToolResponse};

use crate::{
    differential::through,
    model::names::{CONTRACT, allowed},
    support::empty_result,
};

/// Letters outside ASCII that something could take for others, one text for each kind.
const SPECIALS: [&str; 6] = [
    // Of no width: a space, joiners, a soft hyphen, a byte order mark, a variation, a tag, and a turn of direction.
    "\u{200b}\u{200c}\u{200d}\u{2060}\u{ad}\u{feff}\u{fe0f}\u{e0065}\u{202e}",
    // Full width, bold and subscript: NFKC makes plain letters and underscores of them.
    "\u{ff45}\u{ff4f}\u{ff3f}\u{1d41e}\u{2c7c}",
    // Look-alikes: Cyrillic a, e, o and c, Greek o, and what folds into s, k and i.
    "\u{430}\u{435}\u{43e}\u{441}\u{3bf}\u{17f}\u{212a}\u{131}\u{130}",
    // What combines with the letter before.
    "\u{301}\u{308}\u{20dd}",
    // White space and control characters.
    "\u{85}\u{a0}\u{2028}\u{3000}",
    // Letters and digits of their own.
    "\u{e9}\u{df}\u{667}",
];

/// What a letter may become: anything in ASCII, control characters included, and the specials.
fn letters() -> Vec<char> {
    let specials = SPECIALS.into_iter().flat_map(str::chars);
    (0..128_u8).map(char::from).chain(specials).collect()
}

/// Every name that one insertion, deletion, replacement or swap makes of `name`, and the name.
fn neighbours(name: &str) -> BTreeSet<String> {
    let letters = letters();
    let own: Vec<char> = name.chars().collect();
    let mut found = BTreeSet::from([name.to_owned()]);
    for at in 0..=own.len() {
        let (before, after) = own.split_at(at);
        let with = |middle: &[char], after: &[char]| [before, middle, after].concat().into_iter().collect::<String>();
        found.extend(letters.iter().map(|letter| with(&[*letter], after)));
        if let [first, rest @ ..] = after {
            found.insert(with(&[], rest));
            found.extend(letters.iter().map(|letter| with(&[*letter], rest)));
            if let [second, rest @ ..] = rest {
                found.insert(with(&[*second, *first], rest));
            }
        }
    }
    found
}

#[test]
fn all_neighbours_of_the_names_are_decided_as_in_the_model() {
    let names: BTreeSet<String> = CONTRACT.into_iter().flat_map(neighbours).collect();
    for profile in Profile::ALL {
        let layer = GovernanceLayer::new(profile);
        let expected: Vec<&String> = names.iter().filter(|name| allowed(profile.as_str(), "", name)).collect();
        let tools = names.iter().map(|name| Tool::new(name.clone(), "", object!({"type": "object"}))).collect();
        let list = ListToolsResult::with_all_items(tools);
        let (answer, _) = through(&layer, ToolRequest::list(), move || Ok(list.clone().into()));
        let Ok(ToolResponse::List(list)) = answer else { panic!("no list: {answer:?}") };
        assert!(list.tools.iter().map(|tool| &*tool.name).eq(expected.iter().map(|name| name.as_str())), "{profile}");

        let mut called = Vec::new();
        for name in &names {
            let arguments = object!({"decision_id": "d", "webhook_url": "w"});
            let call = ToolRequest::call(name.clone(), arguments);
            let (_, received) = through(&layer, call, || Ok(empty_result()));
            if !received.is_empty() {
                called.push(name);
            }
        }
        assert_eq!(called, expected, "{profile}");
        let exact = [4, 6, 7].into_iter().zip(Profile::ALL).find(|(_, other)| *other == profile);
        assert!(exact.is_none_or(|(count, _)| called.len() == count), "{profile} reaches {called:?}");
    }
    assert_eq!(names.len(), 26_885);
}
