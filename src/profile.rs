//! Profiles: which tools a model was given.

use std::{error, fmt, str::FromStr};

use rmcp::model::Extensions;
use serde::{Deserialize, Serialize};

/// The one tool of the contract that acts on the world.
pub(crate) const EXECUTE_DECISION: &str = "execute_decision";

/// Makes the table and the look-up from one list: a `match` on constants compares words, where a loop over the table
/// compares byte strings, and every call asks twice.
macro_rules! contract {
    ($($tool:tt => $first:ident,)+) => {
        /// The tools of the contract, each with the first profile that has it.
        const CONTRACT: &[(&str, Profile)] = &[$(($tool, Profile::$first)),+];

        #[inline]
        fn first_with(tool: &str) -> Option<Profile> {
            match tool {
                $($tool => Some(Profile::$first),)+
                _ => None,
            }
        }
    };
}

// The only copy of that table.
contract! {
    "get_contract" => Observe,
    "query_data" => Observe,
    "simulate" => Observe,
    "recommend" => Observe,
    "plan_decision" => Govern,
    "log_decision" => Govern,
    EXECUTE_DECISION => Execute,
}

/// Whether `tool` is one of the seven tools of the contract.
#[inline]
pub(crate) fn is_contract_tool(tool: &str) -> bool {
    first_with(tool).is_some()
}

/// The tools that a model was given; each profile adds to the one before.
///
/// A profile is chosen by the operator and never derived from a tool's annotations: the real engine says that
/// `simulate` is not read-only and that `execute_decision` is idempotent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Profile {
    /// `get_contract`, `query_data`, `simulate`, `recommend`.
    #[default]
    Observe,
    /// And `plan_decision`, `log_decision`.
    Govern,
    /// And `execute_decision`.
    Execute,
    /// Whatever the engine advertises. For operators' tooling: the real engine advertises 140 tools, among them one
    /// that changes the execution policy.
    Full,
}

impl Profile {
    /// All profiles, smallest first.
    pub const ALL: [Self; 4] = [Self::Observe, Self::Govern, Self::Execute, Self::Full];

    /// The profile's name, as the contract spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Govern => "govern",
            Self::Execute => "execute",
            Self::Full => "full",
        }
    }

    /// Whether the profile has `tool`, byte for byte.
    ///
    /// ```
    /// # use tower_algenta::Profile;
    /// assert!(Profile::Observe.has("simulate"));
    /// assert!(!Profile::Observe.has("Simulate"));
    /// assert!(!Profile::Observe.has("execute_decision"));
    /// ```
    #[inline]
    #[must_use]
    pub fn has(self, tool: &str) -> bool {
        self == Self::Full || first_with(tool).is_some_and(|first| first <= self)
    }

    /// The smallest profile that names `tool`; `None` for a tool that only [`Profile::Full`] can reach.
    #[must_use]
    pub fn first_with(tool: &str) -> Option<Self> {
        first_with(tool)
    }

    /// The tools that the profile names. [`Profile::Full`] names those of [`Profile::Execute`] and has all others too.
    pub fn tools(self) -> impl Iterator<Item = &'static str> {
        CONTRACT.iter().filter(move |&&(_, first)| first <= self).map(|&(name, _)| name)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Profile {
    type Err = ParseProfileError;

    /// Reads a profile's exact name: `"Execute"` and `" execute"` are errors.
    fn from_str(name: &str) -> Result<Self, ParseProfileError> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == name)
            .ok_or_else(|| ParseProfileError { name: crate::tool_names::for_message(name) })
    }
}

/// The name is not that of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseProfileError {
    name: String,
}

impl fmt::Display for ParseProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown profile \"{}\": expected one of", self.name)?;
        for (index, profile) in Profile::ALL.into_iter().enumerate() {
            write!(f, "{} {profile}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl error::Error for ParseProfileError {}

/// Decides which tools a caller may list and call.
///
/// Asked with a logical name (see [`ToolNames`](crate::ToolNames)) and the request's extensions, for a list as for a
/// call, so that a tool is listed exactly if it can be called. The answer for a name must not depend on anything else.
///
/// A [`Profile`] is one, and so is a closure; with [`policy_fn`] the types of its arguments can be left out.
///
/// ```
/// # use tower_algenta::{Profile, ProfileFilterLayer, policy_fn};
/// let readers = ProfileFilterLayer::new(policy_fn(|tool, _| Profile::Observe.has(tool) || tool == "list_runs"));
/// ```
pub trait ToolPolicy: Clone {
    /// Whether the caller may use `tool`.
    fn allows(&self, tool: &str, extensions: &Extensions) -> bool;
}

impl ToolPolicy for Profile {
    fn allows(&self, tool: &str, _: &Extensions) -> bool {
        self.has(tool)
    }
}

impl<F> ToolPolicy for F
where
    F: Fn(&str, &Extensions) -> bool + Clone,
{
    fn allows(&self, tool: &str, extensions: &Extensions) -> bool {
        self(tool, extensions)
    }
}

/// Makes a policy of a closure, whose arguments' types are then known to the compiler.
pub const fn policy_fn<F>(policy: F) -> F
where
    F: Fn(&str, &Extensions) -> bool + Clone,
{
    policy
}

/// Takes each request's [`Profile`] from its extensions, where a gateway put it; absent means [`Profile::Observe`].
///
/// ```
/// # use tower_algenta::{Profile, ProfileFilterLayer, ProfileFromExtensions, ToolRequest};
/// let layer = ProfileFilterLayer::new(ProfileFromExtensions::new());
/// let mut request = ToolRequest::list();
/// request.extensions_mut().insert(Profile::Govern); // of the caller who was authenticated
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ProfileFromExtensions;

impl ProfileFromExtensions {
    /// Creates the policy.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl ToolPolicy for ProfileFromExtensions {
    fn allows(&self, tool: &str, extensions: &Extensions) -> bool {
        extensions.get::<Profile>().copied().unwrap_or_default().has(tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_adds_to_the_one_before() {
        assert_eq!(Profile::Observe.tools().count(), 4);
        assert_eq!(Profile::Govern.tools().count(), 6);
        assert_eq!(Profile::Execute.tools().count(), 7);
        for pair in Profile::ALL.windows(2) {
            assert!(pair[0].tools().all(|tool| pair[1].has(tool)));
        }
    }

    #[test]
    fn a_profile_is_read_by_its_exact_name() {
        for profile in Profile::ALL {
            assert_eq!(profile.as_str().parse(), Ok(profile));
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.as_str());
            assert_eq!(serde_json::from_value::<Profile>(profile.as_str().into()).unwrap(), profile);
        }
        assert_eq!(
            " execute\u{1b}".parse::<Profile>().unwrap_err().to_string(),
            r#"unknown profile " execute\u{1b}": expected one of observe, govern, execute, full"#
        );
        assert!("Execute".parse::<Profile>().is_err());
        assert!("".parse::<Profile>().is_err());
    }

    #[test]
    fn an_absent_profile_observes() {
        let mut extensions = Extensions::new();
        assert!(!ProfileFromExtensions.allows("log_decision", &extensions));
        assert!(ProfileFromExtensions.allows("simulate", &extensions));
        extensions.insert(Profile::Govern);
        assert!(ProfileFromExtensions.allows("log_decision", &extensions));
    }
}
