//! Listing × catalog → what is to be read, removed, held back. Pure, so that any order of events that
//! leads to the same two inputs leads to the same plan.

use std::collections::HashSet;

use super::catalog::{Catalog, Known};
use crate::index::description_hash;
use crate::model::{Listing, Origin, Resource, Uri};

/// How much of a listing is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What is new or described anew.
    New,
    /// Everything: hints may have been lost, or there are none.
    All,
}

/// What is to be done about a listing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What the listing holds, in its order.
    pub listed: Vec<Resource>,
    /// URIs to read, in the listing's order.
    pub reads: Vec<Uri>,
    /// URIs to remove from the index, sorted.
    pub removals: Vec<Uri>,
    /// URIs whose absence isn't believed yet: they stay, marked stale. Sorted.
    pub withheld: Vec<Uri>,
    /// URIs that an incomplete listing doesn't hold: they stay, marked stale. Sorted.
    pub unconfirmed: Vec<Uri>,
    /// Reads that the depth asks for and the server's word spares.
    pub spared: u64,
}

/// Up to so many removals aren't a mass.
const FEW: usize = 10;

/// A server with so few resources may lose them all at once.
const SMALL: usize = 3;

/// What a plan depends on beside the listing and the catalog.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub depth: Depth,
    /// URIs whose absence an earlier complete listing has seen, long enough ago, or that the user
    /// has confirmed.
    pub absent_before: Option<&'a HashSet<Uri>>,
    /// Whether every absence is believed at once.
    pub trusting: bool,
    /// Whether the config lets a URI in.
    pub wanted: &'a dyn Fn(&str) -> bool,
    /// Whether a resource that the index holds as described needn't be read, whatever the depth.
    pub spared: &'a dyn Fn(&Known, &Resource) -> bool,
}

/// Makes the plan.
pub fn plan(catalog: &Catalog, listing: Listing, terms: Terms<'_>) -> Plan {
    let Listing { resources, complete, expansions_complete, .. } = listing;
    let listed: Vec<Resource> = resources.into_iter().filter(|r| (terms.wanted)(&r.uri)).collect();
    let held: HashSet<&str> = listed.iter().map(|resource| &*resource.uri).collect();
    let mut plan = Plan::default();
    for resource in &listed {
        match verdict(catalog.get(&resource.uri), resource, &terms) {
            Verdict::Read => plan.reads.push(resource.uri.clone()),
            Verdict::Spare => plan.spared += 1,
            Verdict::Leave => {}
        }
    }
    let mut absent = vec![];
    for (uri, known) in catalog.iter().filter(|(uri, _)| !held.contains(&***uri)) {
        if !(terms.wanted)(uri) {
            plan.removals.push(uri.clone());
        } else if if known.template.is_some() { expansions_complete } else { complete } {
            absent.push(uri.clone());
        } else {
            plan.unconfirmed.push(uri.clone());
        }
    }
    match terms.trusting || !is_mass(absent.len(), catalog.len()) {
        true => plan.removals.extend(absent),
        false => {
            let before = |uri: &Uri| terms.absent_before.is_some_and(|before| before.contains(uri));
            let (seen_twice, once): (Vec<Uri>, Vec<Uri>) = absent.into_iter().partition(before);
            plan.removals.extend(seen_twice);
            plan.withheld = once;
        }
    }
    plan.removals.sort_unstable();
    plan.withheld.sort_unstable();
    plan.unconfirmed.sort_unstable();
    plan.listed = listed;
    plan
}

enum Verdict {
    Read,
    /// Nothing asks for it.
    Leave,
    Spare,
}

fn verdict(known: Option<&Known>, resource: &Resource, terms: &Terms<'_>) -> Verdict {
    let as_described =
        |known: &&Known| known.hash.is_some() && known.description == description_hash(resource);
    match known.filter(as_described) {
        None => Verdict::Read,
        Some(_) if terms.depth == Depth::New => Verdict::Leave,
        Some(known) if (terms.spared)(known, resource) => Verdict::Spare,
        Some(_) => Verdict::Read,
    }
}

/// Whether so many removals of so many resources are more than chance.
fn is_mass(removals: usize, of: usize) -> bool {
    (removals > FEW && removals * 5 > of) || (removals == of && of > SMALL)
}

/// The template of an origin.
pub fn template_of(origin: &Origin) -> Option<&str> {
    match origin {
        Origin::Listed => None,
        Origin::Template(template) => Some(template),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ContentHash;
    use proptest::prelude::*;

    fn resource(at: usize) -> Resource {
        Resource { name: format!("{at}"), ..Resource::new(format!("a://{at}")) }
    }

    fn catalog(of: impl IntoIterator<Item = usize>) -> Catalog {
        let mut catalog = Catalog::default();
        for at in of {
            let description = description_hash(&resource(at));
            catalog.change(&resource(at).uri, |known| {
                *known = Known {
                    hash: Some(ContentHash([0; 16])),
                    description,
                    stored: true,
                    ..Known::default()
                };
            });
        }
        catalog
    }

    fn listing(of: impl IntoIterator<Item = usize>, complete: bool) -> Listing {
        let resources = of.into_iter().map(resource).collect();
        Listing { resources, complete, expansions_complete: complete, ..Listing::default() }
    }

    const TERMS: Terms<'_> = Terms {
        depth: Depth::New,
        absent_before: None,
        trusting: false,
        wanted: &|_| true,
        spared: &|_, _| false,
    };

    #[test]
    fn what_is_new_is_read_and_what_is_gone_removed() {
        let plan = plan(&catalog(0..5), listing([0, 1, 2, 3, 7], true), TERMS);
        assert_eq!(
            (&plan.reads[..], &plan.removals[..]),
            (&["a://7".into()][..], &["a://4".into()][..])
        );
    }

    #[test]
    fn a_new_description_is_a_reason_to_read() {
        let mut listing = listing(0..2, true);
        listing.resources[1].title = Some("new".into());
        assert_eq!(plan(&catalog(0..2), listing, TERMS).reads, ["a://1".into()]);
    }

    #[test]
    fn an_incomplete_listing_removes_nothing() {
        let plan = plan(&catalog(0..5), listing([0], false), TERMS);
        assert!(plan.removals.is_empty());
        assert_eq!(plan.unconfirmed.len(), 4);
    }

    #[test]
    fn a_mass_removal_is_believed_the_second_time() {
        let once = plan(&catalog(0..100), listing(0..70, true), TERMS);
        assert_eq!((once.removals.len(), once.withheld.len()), (0, 30));
        let seen: HashSet<Uri> = once.withheld.into_iter().collect();
        let twice = plan(
            &catalog(0..100),
            listing(0..60, true),
            Terms { absent_before: Some(&seen), ..TERMS },
        );
        assert_eq!((twice.removals.len(), twice.withheld.len()), (30, 10));
        let trusting =
            plan(&catalog(0..100), listing(0..70, true), Terms { trusting: true, ..TERMS });
        assert_eq!(trusting.removals.len(), 30);
    }

    #[test]
    fn masses_are_told_from_few() {
        for (removals, of, mass) in [
            (10, 11, false),
            (11, 54, true),
            (11, 55, false),
            (4, 4, true),
            (3, 3, false),
            (1, 4, false),
            (0, 0, false),
        ] {
            assert_eq!(is_mass(removals, of), mass, "{removals} of {of}");
        }
    }

    #[test]
    fn the_config_removes_at_once() {
        let wanted = |uri: &str| uri == "a://1";
        let plan = plan(&catalog(0..50), listing(0..50, false), Terms { wanted: &wanted, ..TERMS });
        assert_eq!((plan.removals.len(), plan.listed.len()), (49, 1));
    }

    #[test]
    fn expansions_go_by_their_own_completeness() {
        let mut catalog = catalog(0..2);
        catalog.change(&"a://1".into(), |known| known.template = Some("a://{x}".into()));
        let mut listing = listing([0], true);
        listing.expansions_complete = false;
        assert_eq!(plan(&catalog, listing.clone(), TERMS).unconfirmed, ["a://1".into()]);
        listing.expansions_complete = true;
        assert_eq!(plan(&catalog, listing, TERMS).removals, ["a://1".into()]);
    }

    proptest! {
        #[test]
        fn a_plan_accounts_for_every_resource(
            have in proptest::collection::btree_set(0_usize..60, 0..60),
            get in proptest::collection::btree_set(0_usize..60, 0..60),
            complete: bool,
            all: bool,
        ) {
            let depth = if all { Depth::All } else { Depth::New };
            let plan = plan(&catalog(have.clone()), listing(get.clone(), complete), Terms { depth, ..TERMS });
            let absent = have.difference(&get).count();
            prop_assert_eq!(plan.removals.len() + plan.withheld.len() + plan.unconfirmed.len(), absent);
            prop_assert!(complete || plan.removals.is_empty());
            let expected = if all { get.len() } else { get.difference(&have).count() };
            prop_assert_eq!(plan.reads.len(), expected);
        }
    }
}
