//! Methods that are no tool methods, passed on to the engine.

use std::{collections::HashSet, future::Future};

use rmcp::{
    ErrorData, RoleClient, ServiceError,
    model::{CompleteResult, ConstString, Extensions, PromptsCapability, ResourcesCapability, ServerCapabilities},
    service::Peer,
};

use super::failure::{engines_own, error_data};
use crate::{
    NEVER_MODEL_FACING, Profile, ToolNames, ToolRequest, Toolset, client::Connections, hidden_fields::canonical,
};

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
        let hidden: HashSet<String> = (advertised.tools.into_iter().map(|tool| tool.name.into_owned()))
            .chain(Profile::Execute.tools().flat_map(|tool| [tool.to_owned(), names.wire(tool)]))
            .filter(|name| !allowed.contains(name) && !name.is_empty())
            .chain(NEVER_MODEL_FACING.into_iter().map(str::to_owned))
            .map(|name| canonical(&name))
            .collect();
        let is_hidden =
            |word: &str| !allowed.contains(word) && (hidden.contains(&canonical(word)) || names.is_look_alike(word));
        let completion = &mut completed.completion;
        let before = completion.values.len();
        completion.values.retain(|value| !words(value).any(is_hidden));
        if completion.values.len() < before {
            // It would tell how many are left out.
            completion.total = None;
        }
        Ok(())
    }
}

/// What in a text could be an identifier.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric() && !matches!(char, '_' | '-' | '.')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_whole_words() {
        assert!(words("use `execute_decision` now").any(|word| word == "execute_decision"));
        assert!(words("force=true").any(|word| word == "force"));
        assert!(words("execute_decision_v2, enforced").all(|word| word != "execute_decision" && word != "force"));
    }
}
