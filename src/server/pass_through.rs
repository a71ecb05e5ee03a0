//! Methods that are no tool methods, passed on to the engine.

use std::{collections::HashSet, future::Future, iter};

use rmcp::{
    ErrorData, RoleClient, ServiceError,
    model::{CompleteResult, ConstString, Extensions, PromptsCapability, ResourcesCapability, ServerCapabilities},
    service::Peer,
};

use super::failure::{engines_own, error_data};
use crate::{NEVER_MODEL_FACING, Profile, ToolNames, ToolRequest, Toolset, client::Connections};

/// A group of methods that a [`ToolServer`](super::ToolServer) can pass on to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassThrough {
    /// `prompts/list` and `prompts/get`. Their texts pass unread.
    Prompts,
    /// `resources/list`, `resources/templates/list` and `resources/read`, without subscriptions. They pass unread.
    Resources,
    /// `completion/complete`, without the values that name a tool which the caller has not, or an operator's switch.
    Completion,
}

/// What is passed on, and where to.
#[derive(Clone, Default)]
pub(super) struct Passed {
    engine: Option<Connections>,
    prompts: bool,
    resources: bool,
    completion: bool,
}

impl Passed {
    pub(super) fn new(engine: Connections, methods: impl IntoIterator<Item = PassThrough>) -> Self {
        let mut passed = Self { engine: Some(engine), ..Self::default() };
        for method in methods {
            match method {
                PassThrough::Prompts => passed.prompts = true,
                PassThrough::Resources => passed.resources = true,
                PassThrough::Completion => passed.completion = true,
            }
        }
        passed
    }

    pub(super) fn add_to(&self, capabilities: &mut ServerCapabilities) {
        capabilities.prompts = self.prompts.then(PromptsCapability::default);
        capabilities.resources = self.resources.then(ResourcesCapability::default);
        capabilities.completions = self.completion.then(Default::default);
    }

    const fn passes(&self, group: PassThrough) -> bool {
        match group {
            PassThrough::Prompts => self.prompts,
            PassThrough::Resources => self.resources,
            PassThrough::Completion => self.completion,
        }
    }

    /// Asks the engine, if `group` is passed through; otherwise there is no such method.
    pub(super) async fn ask<M, T, F>(
        &self,
        group: PassThrough,
        extensions: &Extensions,
        ask: impl FnOnce(Peer<RoleClient>) -> F + Send,
    ) -> Result<T, ErrorData>
    where
        M: ConstString,
        F: Future<Output = Result<T, ServiceError>> + Send,
    {
        match &self.engine {
            Some(engine) if self.passes(group) => {
                let answer = async { engine.connect(extensions).await?.ask(ask).await };
                answer.await.map_err(|error| match (group, engines_own(&error)) {
                    // What passes unread, passes whole.
                    (PassThrough::Prompts | PassThrough::Resources, Some(own)) => own.clone(),
                    _ => error_data(&error),
                })
            }
            _ => Err(ErrorData::method_not_found::<M>()),
        }
    }

    /// Takes out of what completion offers whatever names a tool that `allowed` has not, or an operator's switch.
    pub(super) async fn clean(
        &self,
        completed: &mut CompleteResult,
        names: &ToolNames,
        allowed: &HashSet<String>,
    ) -> Result<(), ErrorData> {
        let Some(engine) = &self.engine else { return Ok(()) };
        let advertised = Toolset::from_governed_stack(engine.clone());
        let advertised = advertised.list_merged(ToolRequest::list_from).await.map_err(|error| error_data(&error))?;
        let hidden: Vec<String> = (advertised.tools.into_iter().map(|tool| tool.name.into_owned()))
            .chain(Profile::Execute.tools().flat_map(|tool| [tool.to_owned(), names.wire(tool)]))
            .filter(|name| !allowed.contains(name) && !name.is_empty())
            .chain(NEVER_MODEL_FACING.into_iter().map(str::to_owned))
            .collect();
        let completion = &mut completed.completion;
        let before = completion.values.len();
        completion.values.retain(|value| !hidden.iter().any(|name| names_word(value, name)));
        if completion.values.len() < before {
            // It would tell how many are left out.
            completion.total = None;
        }
        Ok(())
    }
}

/// Whether `word` stands in `text` as an identifier of its own.
fn names_word(text: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let mut rest = text;
    iter::from_fn(|| {
        let (before, after) = rest.split_once(word)?;
        let stands_alone = !before.ends_with(is_part) && !after.starts_with(is_part);
        rest = after;
        Some(stands_alone)
    })
    .any(|stands_alone| stands_alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_inside_another_is_not_named() {
        assert!(names_word("execute_decision", "execute_decision"));
        assert!(names_word("use `execute_decision` now", "execute_decision"));
        assert!(names_word("forces force", "force"));
        assert!(!names_word("execute_decision_v2", "execute_decision"));
        assert!(!names_word("enforced", "force"));
    }
}
