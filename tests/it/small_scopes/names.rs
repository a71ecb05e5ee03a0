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

/// What a letter may become: some of every kind that a name's rules tell apart.
const LETTERS: [char; 14] =
    ['e', 'o', 'E', '_', '-', '.', '/', ' ', '\n', '\0', '7', '\u{435}', '\u{ff45}', '\u{200b}'];

/// Every name that one insertion, deletion, replacement or swap makes of `name`, and the name.
fn neighbours(name: &str) -> BTreeSet<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut found = BTreeSet::from([name.to_owned()]);
    for at in 0..=letters.len() {
        let (before, after) = letters.split_at(at);
        let with = |middle: &[char], after: &[char]| [before, middle, after].concat().into_iter().collect::<String>();
        found.extend(LETTERS.map(|letter| with(&[letter], after)));
        if let [first, rest @ ..] = after {
            found.insert(with(&[], rest));
            found.extend(LETTERS.map(|letter| with(&[letter], rest)));
            found.extend(first.to_uppercase().map(|letter| with(&[letter], rest)));
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
    assert_eq!(names.len(), 2516);
}
