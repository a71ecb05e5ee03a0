//! How what is known of one subschema spreads to those around it.

use serde_json::Value;

use super::{
    graph::Graph,
    keyword::{Keyword, accepts_all, holds_object},
    pattern::Spells,
    reach::{Edge, Reach},
};

impl Graph<'_> {
    /// Finds what becomes of the values that each subschema judges. `is_open` says that references lead out of the
    /// schema.
    pub(super) fn spread_reach(&mut self, is_open: bool) {
        self.nodes[0].reach = Reach::ROOT;
        let mut names = Vec::new();
        for node in &self.nodes {
            names.extend(node.edges.iter().filter(|(_, edge)| *edge == Edge::Name).map(|&(target, _)| target));
        }
        for id in names {
            self.nodes[id].reach = self.nodes[id].reach.and(Reach::NAME);
        }
        if is_open {
            // Whatever stands there may come back to any place of this schema.
            for node in &mut self.nodes {
                node.reach = node.reach.and(Reach::STRIPPED).and(Reach::KEPT);
            }
        }
        let mut waiting: Vec<usize> = (0..self.nodes.len()).rev().collect();
        while let Some(id) = waiting.pop() {
            let reach = self.nodes[id].reach;
            for at in 0..self.nodes[id].edges.len() {
                let (target, edge) = self.nodes[id].edges[at];
                let old = self.nodes[target].reach;
                let new = old.and(if reach == Reach::NONE { reach } else { reach.below(edge, self.scope) });
                if new != old {
                    self.nodes[target].reach = new;
                    waiting.push(target);
                }
            }
        }
    }

    /// Finds what shifts and what forgets, and spreads both to the schemas around.
    pub(super) fn spread_doubts(&mut self) {
        let mut users = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate() {
            for &(target, edge) in &node.edges {
                users[target].push((id, edge));
            }
        }
        let mut waiting = Vec::new();
        for id in 0..self.nodes.len() {
            if self.nodes[id].shifts || self.shifts_by_itself(id) {
                self.nodes[id].shifts = true;
                waiting.push(id);
            }
        }
        while let Some(id) = waiting.pop() {
            for &(user, _) in &users[id] {
                if !self.nodes[user].shifts {
                    self.nodes[user].shifts = true;
                    waiting.push(user);
                }
            }
        }
        for id in 0..self.nodes.len() {
            if self.nodes[id].forgets || self.forgets_by_itself(id) {
                self.nodes[id].forgets = true;
                waiting.push(id);
            }
        }
        while let Some(id) = waiting.pop() {
            for &(user, edge) in &users[id] {
                if edge == Edge::Same && !self.nodes[user].forgets {
                    self.nodes[user].forgets = true;
                    waiting.push(user);
                }
            }
        }
    }

    /// Whether the scrub of this subschema's own keywords, or that of the values they look at, may turn a refusal into an
    /// acceptance.
    fn shifts_by_itself(&self, id: usize) -> bool {
        let node = &self.nodes[id];
        let loses = node.reach.loses_keys();
        node.is_cut
            || node.schema.iter().any(|(key, value)| match Keyword::of(key) {
                Keyword::Properties => has_member(value, |name, _| self.fields.hides(name)),
                Keyword::PatternProperties => {
                    has_member(value, |pattern, _| loses || self.fields.spelled_by(pattern) != Spells::Nothing)
                }
                Keyword::DependentSchemas | Keyword::Dependencies | Keyword::DependentRequired => {
                    has_member(value, |name, value| self.fields.hides(name) || self.fields.lists_hidden(value))
                }
                Keyword::Names => self.fields.lists_hidden(value),
                Keyword::AdditionalProperties | Keyword::Unevaluated => loses && !accepts_all(value),
                Keyword::PropertyNames | Keyword::MinProperties | Keyword::MaxProperties => loses,
                Keyword::UniqueItems => self.loosens_unique(node.schema, node.reach),
                Keyword::Const | Keyword::Enum => {
                    // An object that was told from a constant by a hidden key alone no longer is.
                    loses && holds_object(value)
                        || self.fields.holds_hidden(value)
                        || node.reach.is_name() && self.fields.lists_hidden(value)
                }
                Keyword::Pattern => node.reach.is_name() && value.as_str().is_some_and(|text| self.spells(text)),
                _ => false,
            })
    }

    /// Whether the scrub of this subschema's own keywords leaves something unevaluated.
    fn forgets_by_itself(&self, id: usize) -> bool {
        let node = &self.nodes[id];
        node.is_cut
            || node.schema.iter().any(|(key, value)| match Keyword::of(key) {
                Keyword::Properties => node.reach.keeps_keys() && has_member(value, |name, _| self.fields.hides(name)),
                Keyword::PatternProperties => has_member(value, |pattern, _| {
                    let spells = self.fields.spelled_by(pattern);
                    spells == Spells::AmongOthers || spells == Spells::Only && node.reach.keeps_keys()
                }),
                Keyword::DependentSchemas | Keyword::Dependencies => {
                    has_member(value, |name, _| self.fields.hides(name))
                }
                Keyword::If => self.shifts(value),
                _ => false,
            })
    }
}

fn has_member(members: &Value, test: impl Fn(&str, &Value) -> bool) -> bool {
    members.as_object().is_some_and(|members| members.iter().any(|(name, value)| test(name, value)))
}
