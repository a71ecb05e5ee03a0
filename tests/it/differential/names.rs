//! Names.

use rmcp::{
    model::{ListToolsResult, Tool},
    object,
};
use tower_algenta::{GovernanceLayer, Profile, ToolNames, ToolRequest, ToolResponse};

use super::{cases, through};
use crate::{
    model::{self, names::CONTRACT},
    random::Random,
    support::empty_result,
};

const PREFIXES: [&str; 7] = ["", "algenta_", "srv__", "execute_", "x_execute_", "EXECUTE-", "\u{e9}_"];

struct Names(Random);

impl Names {
    fn name(&mut self) -> String {
        let mut name = match self.0.below(8) {
            0 => self.0.pick(&["", "query_batch", "decision", "_decision", "plan", "executeDecision"]).to_owned(),
            1 => "a".repeat(self.0.pick(&[&0_usize, &1, &127, &128, &129]).to_owned()),
            2 => "execute_decision".to_owned(),
            _ => self.0.pick(&CONTRACT).to_owned(),
        };
        for _ in 0..self.0.below(3) {
            let at = (0..=self.0.below(name.len() + 1)).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
            let piece = self.0.pick(&[
                "_", "-", ".", "/", " ", "\n", "\0", "E", "\u{200b}", "\u{ff45}", "\u{435}", "v2", "$", "\u{301}",
            ]);
            match self.0.below(3) {
                0 => name.insert_str(at, piece),
                1 => name.truncate(at),
                _ => name = name.to_uppercase(),
            }
        }
        for _ in 0..self.0.below(3) {
            name.insert_str(0, self.0.pick(&PREFIXES));
        }
        name
    }
}

/// Whether the whole stack lets a call through, and whether it lists the tool.
pub(crate) fn reachable(profile: Profile, prefix: &str, name: &str) -> (bool, bool) {
    let layer = GovernanceLayer::new(profile).tool_names(ToolNames::prefixed(prefix));
    let arguments = object!({"decision_id": "d", "webhook_url": "w"});
    let (_, received) = through(&layer, ToolRequest::call(name.to_owned(), arguments), || Ok(empty_result()));
    let tool = Tool::new(name.to_owned(), "", object!({"type": "object"}));
    let list = ListToolsResult::with_all_items(vec![tool]);
    let (answer, _) = through(&layer, ToolRequest::list(), move || Ok(list.clone().into()));
    let Ok(ToolResponse::List(list)) = answer else { panic!("no list: {answer:?}") };
    (!received.is_empty(), !list.tools.is_empty())
}

#[track_caller]
fn compare(profile: Profile, prefix: &str, name: &str) {
    let allowed = model::names::allowed(profile.as_str(), prefix, name);
    assert_eq!(reachable(profile, prefix, name), (allowed, allowed), "{name:?} behind {prefix:?} under {profile}");
}

#[test]
fn names_are_reached_as_in_the_model() {
    let mut random = Names(Random::new(0x005e_ed03));
    for _ in 0..cases() {
        let profile = Profile::ALL[random.0.below(4)];
        let prefix = random.0.pick(&PREFIXES);
        compare(profile, prefix, &random.name());
    }
}

/// What the differential test found, and what to find again.
#[test]
fn cases_that_once_differed() {
    // The prefix takes the look-alike's first half with it.
    for (prefix, name) in [("execute_", "execute_decision"), ("x_execute_", "x_execute_decision")] {
        compare(Profile::Full, prefix, name);
        assert_eq!(reachable(Profile::Full, prefix, name), (false, false));
    }
}
