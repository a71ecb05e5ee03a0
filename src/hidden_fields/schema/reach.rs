//! What becomes of the values that a subschema judges.

use super::super::Scope;

/// What the argument scrub does to the instances of a subschema: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach(u8);

impl Reach {
    /// Nothing is known to be judged by it.
    pub(super) const NONE: Self = Self(0);
    /// They are the arguments themselves, whose hidden keys go.
    pub(super) const ROOT: Self = Self(1);
    /// Their hidden keys go, at any depth.
    pub(super) const STRIPPED: Self = Self(2);
    /// Their hidden keys stay.
    pub(super) const KEPT: Self = Self(4);
    /// They are names of properties.
    pub(super) const NAME: Self = Self(8);

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether an instance may lose keys of its own.
    pub(super) const fn loses_keys(self) -> bool {
        self.has(Self::ROOT.and(Self::STRIPPED))
    }

    /// Whether an instance may keep a key that the schema no longer names.
    pub(super) const fn keeps_keys(self) -> bool {
        self.has(Self::KEPT)
    }

    pub(super) const fn is_root(self) -> bool {
        self.has(Self::ROOT)
    }

    /// Whether an instance may be the name of a property.
    pub(super) const fn is_name(self) -> bool {
        self.has(Self::NAME)
    }

    /// Whether every instance is the name of a property.
    pub(super) const fn is_only_name(self) -> bool {
        self.0 == Self::NAME.0
    }

    /// The reach of a subschema that judges a part of what this one judges.
    pub(super) const fn below(self, edge: Edge, scope: Scope) -> Self {
        match edge {
            Edge::Same => self,
            Edge::Name => Self::NAME,
            Edge::Content => Self::STRIPPED.and(Self::KEPT),
            Edge::Metadata | Edge::Argument | Edge::Part => {
                let mut below = Self(self.0 & (Self::STRIPPED.0 | Self::KEPT.0));
                if self.is_root() {
                    below = below.and(match (scope, edge) {
                        (Scope::TopLevel, _) | (Scope::ExceptMetadata, Edge::Metadata) => Self::KEPT,
                        (Scope::ExceptMetadata, Edge::Argument) | (Scope::Everywhere, _) => Self::STRIPPED,
                        (Scope::ExceptMetadata, _) => Self::STRIPPED.and(Self::KEPT),
                    });
                }
                // Below `metadata` a value's keys stay whatever the scope; `STRIPPED` and `KEPT` pass on as they are.
                below
            }
        }
    }
}

/// What the instance of a subschema is to the instance of the schema around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// The same value: `allOf`, `if`, `$ref` …
    Same,
    /// Its member `metadata`.
    Metadata,
    /// Another member, by its name.
    Argument,
    /// Some member, or an element.
    Part,
    /// The name of a member.
    Name,
    /// What a string encodes.
    Content,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_argument_holds_is_stripped_or_kept_as_the_scope_says() {
        for (scope, edge, below) in [
            (Scope::TopLevel, Edge::Argument, Reach::KEPT),
            (Scope::TopLevel, Edge::Metadata, Reach::KEPT),
            (Scope::ExceptMetadata, Edge::Argument, Reach::STRIPPED),
            (Scope::ExceptMetadata, Edge::Metadata, Reach::KEPT),
            (Scope::ExceptMetadata, Edge::Part, Reach::STRIPPED.and(Reach::KEPT)),
            (Scope::Everywhere, Edge::Metadata, Reach::STRIPPED),
        ] {
            assert_eq!(Reach::ROOT.below(edge, scope), below);
            assert_eq!(below.below(Edge::Metadata, scope), below, "only at the top level is `metadata` special");
        }
        assert_eq!(Reach::NAME.below(Edge::Argument, Scope::Everywhere), Reach::NONE);
    }
}
