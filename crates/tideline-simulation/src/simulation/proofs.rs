//! What shows that a rule is needed: a history that is violated without it, and not with it.

use super::history::{Outcome, live};
use super::scripts::{
    Script, archive, chats, follows, groups, homes, inboxes, judged, leases, lists, locks, modes, names,
    play, posts, public, rates, reading, remarks, social, spreading, stores, strays, taken_off, tenants,
    unanswered,
};
use super::shape::Shape;

/// How it shows.
pub(super) enum Proof {
    /// One of so many harsh histories, from the first seed on, is violated.
    Random(u64),
    /// A script is violated.
    Scripted(Script),
    /// Another rule stands behind it: the script is violated only without both.
    Backed(&'static str, Script),
    /// It doesn't show: the nearest story does no harm. docs/testing.md says why.
    Unneeded(Script),
}

use Proof::{Backed, Random, Scripted, Unneeded};

/// Rules that one of so many histories of that shape misses.
pub(super) const FOUND_BY_A_SHAPE: &[(&str, Shape, u64)] = &[
    // What was sent to a server that is silent runs when that wakes, beside what was tried again meanwhile: of as many
    // harsh ones none missed it.
    ("token", Shape::PARTED, 15),
    // A fill ends half-way. Nor did harsh ones miss this.
    ("fill_begins_first", Shape::TORN, 15),
    // Holes are excused, nothing that is hidden.
    ("stamps_compared", Shape::HOLLOW, 15),
];

/// All rules.
pub(super) const ALL: &[(&str, Proof)] = &[
    // Homes
    ("only_fill", Random(20)),
    ("tidy_scan", Scripted(homes::tidied_late)),
    ("cut_anywhere", Scripted(homes::tidied_too_late)),
    ("cut_floor", Random(20)),
    ("tidy_nonce", Scripted(homes::window_of_a_fill)),
    ("watermarks", Random(40)),
    ("finish_arrived", Scripted(homes::watermarks_that_arrived)),
    ("finish_head", Scripted(homes::cut_while_filled)),
    ("finish_cut", Random(40)),
    ("finish_nonce", Scripted(homes::two_fills)),
    ("fill_begins_first", Scripted(homes::published_before_the_home)),
    ("highest_cut", Random(40)),
    ("draw_anew", Scripted(homes::nonce_sent_twice)),
    ("busy", Unneeded(homes::follow_during_a_fill)),
    ("outbox_floor", Random(40)),
    // Remarks
    ("end_goes", Scripted(remarks::muted_for_good)),
    ("state_of_now", Scripted(remarks::mute_ends_beside_a_remembered_state)),
    ("remark_ends", Scripted(remarks::followed_again)),
    ("compare_and_set", Scripted(remarks::tidied_late)),
    // Groups
    ("group_stamp", Scripted(groups::turned_out_before_it_posts)),
    ("owners_compared", Scripted(groups::both_owners_leave)),
    ("given_looks_again", Scripted(groups::made_an_owner_while_it_leaves)),
    ("written_by_nobody", Scripted(groups::deleted_before_its_post_is_listed)),
    ("group_passed_on", Scripted(groups::its_owner_is_deleted)),
    ("invitation_compared", Scripted(groups::invitation_taken_back_while_it_is_used)),
    ("member_let_in", Scripted(groups::made_private_before_it_joins)),
    ("mentioned_outside", Scripted(groups::mentioned_from_a_private_group)),
    ("hidden_compared", Scripted(judged::released_before_the_edit_is_made)),
    // Chats
    ("leaver_blocks", Scripted(chats::left_where_others_remember)),
    ("chat_blocks_leaver", Scripted(chats::leaves_before_it_writes)),
    ("marks_rise", Scripted(chats::a_mark_comes_late)),
    ("leaver_looks_again", Scripted(chats::opened_while_it_leaves)),
    ("one_chat_of_two", Scripted(chats::opened_at_once)),
    // Follow, unfollow
    ("graph_stamp_follow", Random(20)),
    ("marks_stamp_follow", Unneeded(follows::follow_after_a_read)),
    ("mark_at_once", Scripted(follows::follow_shows_at_once)),
    ("counted_first", Scripted(follows::hidden_before_it_is_counted)),
    ("counted_last", Scripted(follows::shown_half_way)),
    ("block_read_again", Scripted(follows::blocked_while_it_follows)),
    ("same_follow", Backed("wanted_again", follows::unblocked_and_followed_again)),
    ("unblock_ends", Scripted(follows::unblocked_at_once)),
    ("wanted_again", Backed("same_follow", follows::unblocked_and_followed_again)),
    ("same_request", Scripted(follows::another_request)),
    ("compare_and_set", Scripted(follows::unfollow_in_a_socket)),
    ("nothing_renews", Scripted(follows::follow_in_a_socket)),
    ("nothing_renews", Scripted(follows::taking_back_in_a_socket)),
    ("nothing_renews", Scripted(follows::rejection_in_a_socket)),
    ("greater", Scripted(follows::edge_comes_late)),
    ("remove_below", Scripted(follows::removal_stalls)),
    ("own_tick", Scripted(follows::removal_stalls)),
    ("tick_above_last", Scripted(follows::removal_stalls_and_clocks_turn_back)),
    ("mark_compared", Scripted(follows::another_mark)),
    ("reach", Random(100)),
    ("edge_counted", Backed("edge_noted", follows::edge_outlives_its_follow)),
    ("joined_counted", Scripted(follows::joined_follower_is_counted)),
    ("removal_counted", Scripted(follows::edge_comes_and_goes_late)),
    ("edge_first", Scripted(follows::posted_before_the_edge)),
    ("mode_looked_at", Scripted(follows::author_is_pulled)),
    ("mode_looked_at", Scripted(follows::joined_author_is_pulled)),
    ("fence_edge", Scripted(follows::unfollow_is_lost)),
    ("fence_unmark", Scripted(follows::edge_is_lost_at_the_author)),
    ("fence_unmark", Scripted(follows::joined_edge_is_lost)),
    ("fence_follow", Backed("join_noted", follows::joined_follow_is_lost)),
    ("join_unblocked", Scripted(follows::blocked_before_it_joins)),
    ("join_unasked", Backed("join_unlocked", follows::approved_and_joined)),
    ("renewed_by_both", Scripted(follows::promoted_beside_a_follow)),
    ("edge_in_settle", Backed("fence_unmark", follows::edge_is_lost_at_the_reader)),
    ("request_first", Backed("nothing_renews", follows::approved_while_it_unfollows)),
    ("request_fenced", Backed("waiting_noted", locks::taken_back_at_the_new_primary)),
    ("denial_fenced", Scripted(locks::approved_at_the_new_primary)),
    ("newer_request", Backed("waiting_noted", follows::asked_again_while_it_is_listed)),
    // Locked accounts
    ("mark_is_new", Scripted(locks::locked_while_it_follows)),
    ("mark_is_new", Scripted(locks::open_for_a_moment)),
    ("lock_read_again", Scripted(locks::locked_while_it_follows)),
    ("join_unlocked", Scripted(locks::locked_before_it_joins)),
    ("new_mark_shows_less", Scripted(locks::read_before_it_is_asked)),
    ("mark_confirmed", Scripted(locks::locked_after_a_follow)),
    ("stamped_first", Scripted(locks::locked_after_half_a_look)),
    ("new_mark_compared", Scripted(locks::asked_by_two)),
    ("new_mark_stays", Scripted(locks::promoted_before_it_is_asked)),
    ("stands_once_more", Scripted(locks::asked_while_it_becomes_a_request)),
    ("stands_once_more", Scripted(locks::asked_who_asks_while_it_becomes_a_request)),
    ("remarked_once_more", Scripted(locks::remarked_while_it_becomes_a_request)),
    ("approved_once_more", Scripted(locks::approved_while_it_becomes_a_request)),
    // Edges that outlive their follows
    ("edge_noted", Scripted(strays::follow_is_lost_after_its_edge)),
    ("edge_noted", Scripted(strays::edge_comes_after_all)),
    ("join_noted", Scripted(strays::follow_is_lost_after_it_joined)),
    ("note_compared", Scripted(strays::edge_comes_while_it_is_looked_at)),
    ("note_fenced", Scripted(strays::follow_is_lost_after_the_look)),
    ("notes_alone", Scripted(strays::follow_is_lost_beside_a_silent_server)),
    ("clock_raised", Scripted(strays::clock_is_behind)),
    // Push and pull
    ("marks_first", Scripted(modes::promoted)),
    ("fence_promotion", Scripted(modes::marks_are_lost)),
    ("still_promoting", Scripted(modes::promotion_is_overtaken)),
    ("mark_anew", Scripted(modes::demotion_stalls)),
    ("following_checked", Scripted(modes::unfollowed_before_it_is_marked)),
    ("mark_before_stamp", Scripted(modes::marked_in_a_moving_slot)),
    ("promotion_keeps", Scripted(modes::promotion_fails_before_its_fence)),
    ("entries_anew", Scripted(modes::promotion_comes_after_its_entry)),
    ("own_change", Scripted(modes::promotion_of_another_time)),
    // Reading
    ("stamps_compared", Random(20)),
    ("stamps_first", Backed("known_first", reading::home_before_its_stamps)),
    ("known_first", Backed("stamps_first", reading::home_before_its_stamps)),
    ("stamps_again", Scripted(reading::second_look_after_a_failover)),
    ("last_try", Scripted(reading::changed_all_the_time)),
    ("state_of_stamps", Scripted(reading::state_of_two_times)),
    ("marks_stamp_settle", Scripted(reading::completion_is_lost)),
    ("one_life", Scripted(reading::two_lives_in_a_trip)),
    ("leaf_still", Scripted(reading::pieces_were_split)),
    ("own_uncached", Scripted(reading::own_post_deleted)),
    ("cache_age", Scripted(reading::cached_post_deleted)),
    ("flight_age", Scripted(reading::joined_an_old_look)),
    // Posts, deliveries
    ("id_above_last", Random(40)),
    ("id_not_behind", Random(40)),
    ("id_not_ahead", Random(40)),
    ("tick_not_ahead", Backed("clock_raised", follows::follow_is_lost_with_a_clock_ahead)),
    ("token", Scripted(posts::sent_twice)),
    ("lost_told", Scripted(unanswered::deleted_by_a_silent_server)),
    ("touch_first", Scripted(posts::published_in_a_moving_slot)),
    ("post_last", Scripted(posts::published_half_way)),
    ("named_followers", Scripted(posts::sent_to_a_stranger)),
    ("author_shown", Scripted(posts::an_id_comes_twice)),
    ("author_delivered", Backed("author_shown", posts::an_id_comes_twice_to_another_instance)),
    ("fence", Scripted(posts::delivery_is_lost)),
    ("fence_strike", Scripted(posts::delivery_is_lost)),
    ("fence_checkpoint", Scripted(posts::delivery_behind_the_checkpoint_is_lost)),
    ("told_in_time", Scripted(posts::followed_at_the_new_primary)),
    ("told_in_time", Scripted(posts::followed_at_the_new_primary_of_a_moving_slot)),
    ("turned_away_by_the_last", Scripted(strays::buried_by_the_old_primarys_word)),
    ("fence_left", Scripted(posts::delivery_beside_what_is_left_is_lost)),
    ("lost_is_left", Scripted(posts::delivery_is_lost_before_its_fence)),
    ("unfenced_noted", Scripted(posts::delivery_nobody_vouches_for_is_lost)),
    ("deposed_is_told", Scripted(posts::nobody_tries_a_deposed_server_again)),
    ("epoch_named", Scripted(posts::delivery_is_vouched_for_later)),
    // Leases
    ("rates_by_median", Scripted(rates::while_a_clock_is_off)),
    ("rates_not_ahead", Scripted(rates::noted_at_a_time_to_come)),
    ("scanned_without_leases", Scripted(leases::posted_while_the_leases_are_away)),
    ("silence_ends", Random(40)),
    ("lease_changes", Scripted(leases::import_beside_engines)),
    ("import_alone", Scripted(leases::import_beside_engines)),
    // Lists of mentions and hashtags
    ("listed_once_named", Scripted(lists::edited_before_it_is_listed)),
    ("named_after_the_look", Scripted(lists::deleted_after_the_first_look)),
    ("named_removal_compared", Scripted(lists::deleted_before_it_is_listed)),
    ("named_removal_compared", Scripted(lists::named_after_all)),
    ("named_removal_told", Scripted(lists::named_after_all)),
    ("dropped_list_told", Scripted(lists::named_after_a_burial)),
    ("dropped_list_told", Scripted(lists::buried_before_it_is_mentioned)),
    ("list_looked_again", Scripted(taken_off::deleted_while_all_is_taken_off_beside_mentions)),
    ("list_owner_again", Scripted(taken_off::buried_while_all_is_taken_off)),
    ("list_asks_post", Scripted(lists::hashtag_is_taken_away)),
    ("mentioned_now", Scripted(lists::mention_is_taken_away)),
    ("unwanted_named", Scripted(lists::unwanted_is_mentioned)),
    ("admitted_lists", Scripted(lists::mentioned_in_what_it_may_not_see)),
    ("fair_lists", Scripted(lists::flooded)),
    ("author_floors", Scripted(lists::flooded)),
    ("fence_floors", Scripted(lists::floors_are_lost)),
    ("fence_floors", Scripted(lists::floor_of_many_is_lost)),
    // The public timeline
    ("public_look_begins", Scripted(public::posted_beside_a_look)),
    ("public_before_the_post", Scripted(public::published_half_way)),
    ("fair_public", Scripted(public::flooded)),
    ("public_behind_the_post", Scripted(public::deleted_half_way)),
    // What the tenant has decided
    ("tenants_settings", Scripted(tenants::settings_differ)),
    ("decided", Scripted(tenants::slept_through_a_decision)),
    ("waiting_noted", Scripted(strays::listed_as_waiting_after_all)),
    ("waiting_noted", Scripted(strays::listed_as_waiting_though_it_follows)),
    // Lists of posts
    ("removal_compared", Scripted(social::taken_back_while_it_is_listed)),
    ("removal_compared", Scripted(social::deleted_while_it_is_listed)),
    ("removal_compared", Scripted(social::listed_after_all)),
    ("removal_told", Scripted(social::listed_after_all)),
    ("compared_so_often", Scripted(taken_off::listed_while_all_is_taken_off)),
    ("listed_looked_again", Scripted(taken_off::deleted_while_all_is_taken_off)),
    ("liked_looked_again", Scripted(taken_off::unliked_while_all_is_taken_off)),
    ("reference_read", Scripted(social::an_id_comes_twice_to_an_author)),
    ("unlisted_at_the_last", Scripted(social::dropping_of_lists_is_lost)),
    ("ties_compared", Scripted(social::like_in_a_socket)),
    ("ties_renewed", Scripted(social::unlike_in_a_socket)),
    ("repost_compared", Scripted(social::repost_in_a_socket)),
    ("undo_compared", Scripted(social::undo_in_a_socket)),
    ("again_renews", Scripted(social::undo_in_a_socket)),
    ("absence_renews", Scripted(social::lost_repost_in_a_socket)),
    ("ties_remembered", Scripted(social::liked_elsewhere)),
    ("ties_remembered", Random(300)),
    ("repost_renews", Random(600)),
    ("ties_carried_on", Scripted(social::liked_between)),
    ("ties_of_stamp", Scripted(social::like_is_lost)),
    ("repost_renews", Scripted(social::reposted_elsewhere)),
    ("undo_renews", Scripted(social::reposted_elsewhere)),
    ("note_last", Scripted(social::undone_half_way)),
    ("note_dropped", Scripted(social::undone_but_for_its_note)),
    ("list_of_nothing", Scripted(social::post_gone_while_it_is_liked)),
    ("unlisted_at_the_last", Scripted(social::answered_at_the_new_primary)),
    ("list_counted", Scripted(social::unlike_in_a_socket)),
    // Names
    ("claim_compared", Scripted(names::both_want_it)),
    ("wanted_counts", Scripted(names::comes_at_once)),
    ("patience", Backed("patience_in_slot", names::comes_at_once)),
    ("patience_in_slot", Backed("patience", names::comes_at_once)),
    ("ended_first", Scripted(names::comes_later)),
    ("fence_claim", Scripted(names::end_of_an_attempt_is_lost)),
    ("ended_as_settled", Scripted(names::settled_half_way)),
    ("fence_end", Scripted(names::end_of_an_attempt_is_lost_before_its_last_word)),
    ("fence_taken", Scripted(names::claim_is_lost)),
    ("fence_settled", Scripted(names::account_is_lost)),
    ("fence_repeated", Scripted(names::account_is_lost_after_a_repeat)),
    ("fence_again", Scripted(names::fails_over_before_a_fence)),
    ("said_again", Scripted(names::fails_over_before_a_fence)),
    ("own_left", Backed("fence_end", names::end_of_its_own_attempt_is_lost)),
    ("reread", Unneeded(names::fails_over_before_it_is_read_again)),
    ("begun_once", Scripted(names::sign_up_in_a_socket)),
    ("settled_again", Scripted(names::settled_twice)),
    ("state_again", Scripted(names::changes_while_it_is_signed_up_again)),
    ("last_attempt", Scripted(names::wakes_up_when_the_name_is_a_strangers)),
    ("twin_looked_at", Scripted(names::twin_settles)),
    ("attempt_asked", Scripted(names::twin_of_an_ended_one_takes)),
    ("said_by_both", Scripted(names::old_name_still_claimed)),
    ("given_up_compared", Scripted(names::given_up_too_late)),
    ("asked_before_given_up", Scripted(names::given_up_when_it_is_back)),
    ("own_attempt", Scripted(names::settles_anothers_attempt)),
    ("own_end", Scripted(names::ends_anothers_attempt)),
    ("one_attempt", Scripted(names::changes_twice)),
    ("names_compared", Scripted(names::begins_with_old_names)),
    ("password_compared", Scripted(names::password_in_a_socket)),
    // What accounts are told
    ("told_first", Scripted(inboxes::told_half_way)),
    ("told_when_new", Scripted(inboxes::told_after_all)),
    ("follow_told_once", Scripted(inboxes::follow_told_again)),
    ("like_of_member_stands", Scripted(inboxes::like_of_a_members_post_taken_back)),
    ("member_told_when_new", Scripted(inboxes::member_told_after_all)),
    ("told_member_lasts", Scripted(inboxes::told_before_a_failover)),
    ("repost_taken_back_late", Scripted(inboxes::reposted_again)),
    ("clear_upto", Scripted(inboxes::clear_in_a_socket)),
    ("inbox_ids_rise", Scripted(inboxes::taken_off_and_told)),
    // Documents and tickets
    ("noted_before", Scripted(names::listed_though_who_signed_up_has_died)),
    ("waits_at_once", Scripted(names::waits_though_who_signed_up_has_died)),
    ("document_version", Scripted(stores::document_in_a_socket)),
    ("document_removals", Scripted(stores::new_document_in_a_socket)),
    ("page_documents_renew", Scripted(stores::left_out_beside_a_remembered_state)),
    ("ticket_spent", Scripted(stores::ticket_in_a_socket)),
    ("fence_taken_ticket", Scripted(stores::taken_before_a_failover)),
    // The archive
    ("only_what_was_stored", Scripted(archive::liked_while_it_leaves)),
    ("only_what_was_stored", Scripted(archive::edited_while_it_leaves)),
    ("only_what_was_stored", Scripted(archive::liked_by_another_while_it_leaves)),
    ("move_token", Scripted(archive::unliked_beside_two_movers)),
    ("fence_stored", Scripted(archive::lost_after_it_was_stored)),
    ("outbox_compared", Backed("gone_is_not_passed", archive::deletions::deleted_while_it_leaves)),
    ("deleted_is_erased", Scripted(archive::deletions::deleted_while_it_leaves)),
    ("thaw_token", Scripted(archive::deletions::deleted_while_it_is_brought_back)),
    ("thaw_token", Scripted(archive::deletions::edited_while_it_is_brought_back)),
    ("floor_first", Scripted(archive::moved_half_way)),
    ("archived_end", Scripted(archive::filled_of_the_archived)),
    ("looked_down_to_the_archive", Scripted(archive::followed_after_they_left)),
    ("thawed_for_a_list", Scripted(archive::liked_in_the_archive)),
    ("archived_is_reposted", Scripted(archive::reposted_in_the_archive)),
    ("thaw_last", Scripted(archive::brought_back_half_way)),
    ("archive_comes_first", Scripted(archive::moved_while_it_is_paged_upwards)),
    ("forgotten_while_there", Scripted(archive::deletions::cold_again_before_it_is_forgotten)),
    ("deletion_looked_at", Backed("thaw_looked_at", archive::deletions::broken_off)),
    ("thaw_looked_at", Scripted(archive::nobody_touches_it_again)),
    ("buried_first", Scripted(archive::deletions::buried_while_they_leave)),
    ("floor_after_the_look", Scripted(archive::left_between_two_looks)),
    ("archive_checked", Scripted(archive::copies::restored)),
    ("deletion_settled", Scripted(archive::copies::restored_from_before_a_deletion)),
    ("needs_compared", Scripted(archive::copies::moved_on_top)),
    ("settled_looked_at", Scripted(archive::copies::forgotten_before_it_settles)),
    ("deletion_noted", Scripted(archive::copies::deletion_forgotten)),
    ("forgotten_again", Scripted(archive::copies::deletion_forgotten)),
    ("needs_what_was_before", Scripted(archive::copies::deletion_forgotten)),
    ("forgotten_for_good", Scripted(archive::copies::burial_made_late)),
    ("again_noted_anew", Unneeded(archive::copies::deletion_forgotten_twice)),
    ("no_second_move", Scripted(archive::rounds::due_while_another_settles)),
    ("gone_is_not_passed", Scripted(archive::deletions::half_deleted_while_it_leaves)),
    ("leaves_below_the_floor", Scripted(archive::rounds::noted_above_the_floor)),
    ("burial_noted", Scripted(archive::copies::burial_forgotten)),
    ("left_below_is_buried", Scripted(archive::deletions::buried_after_a_deletion_that_broke_off)),
    ("list_goes_on", Scripted(archive::lists::left_while_it_is_read)),
    ("marks_after_the_page", Scripted(archive::lists::left_while_it_is_read)),
    ("listing_settled", Scripted(archive::lists::listing_forgotten)),
    ("list_checked", Backed("archive_checked", archive::lists::list_of_an_older_copy)),
    ("unlisted_there", Scripted(archive::lists::nothing_is_left_there)),
    ("list_dropped_there", Scripted(archive::lists::nothing_is_left_there)),
    (
        "forgotten_below_the_floor",
        Backed("leaves_below_the_floor", archive::deletions::above_the_floor_again),
    ),
    ("gone_at_one_token", Scripted(archive::deletions::liked_beside_a_deletion_that_breaks_off)),
    ("buried_is_not_due", Scripted(archive::rounds::buried_with_what_came_back)),
    ("refused_waits", Scripted(archive::rounds::of_an_older_decision)),
    // Search
    ("version_before_the_post", Scripted(archive::searched::edited_while_it_is_indexed)),
    ("indexed_lasts", Scripted(archive::searched::lost_while_it_is_indexed)),
    ("gone_is_indexed", Scripted(archive::searched::deleted_while_it_is_indexed)),
    // Follower sets
    ("split_checked", Scripted(spreading::added_by_an_old_tree)),
    ("frozen_set", Scripted(spreading::added_while_it_is_spread)),
    ("record_after_walk", Scripted(spreading::spread_before_it_is_walked)),
    ("fence_copies", Scripted(spreading::copies_are_lost)),
    ("copies_said", Scripted(spreading::copied_from_a_deposed_primary)),
    ("fence_copied", Scripted(spreading::copied_is_lost)),
    ("fence_ended", Unneeded(spreading::ended_is_lost)),
    ("fence_frozen", Scripted(spreading::frozen_is_lost)),
    ("guard", Scripted(spreading::frozen_copier)),
];

impl Proof {
    /// The violation that shows it; or what doesn't come as it should.
    pub(super) fn holds(&self, rule: &'static str, is_traced: bool) -> Result<String, String> {
        match self {
            Random(many) => {
                let without = (1..=*many).map(|seed| (seed, live(seed, Shape::HARSH, &[rule], false)));
                let found = without.into_iter().find(|(_, outcome)| !outcome.violations.is_empty());
                let (seed, outcome) = found.ok_or_else(|| format!("not missed in {many} histories"))?;
                clean(&live(seed, Shape::HARSH, &[], is_traced))?;
                missed(&outcome).map(|what| format!("seed {seed}: {what}"))
            }
            Scripted(script) => {
                clean(&play(*script, &[], is_traced))?;
                missed(&play(*script, &[rule], is_traced))
            }
            Backed(other, script) => {
                clean(&play(*script, &[], is_traced))?;
                for alone in [rule, other] {
                    let without = play(*script, &[alone], is_traced);
                    clean(&without).map_err(|e| format!("missed without {alone} alone: {e}"))?;
                }
                missed(&play(*script, &[rule, other], is_traced)).map(|what| format!("with {other}: {what}"))
            }
            Unneeded(script) => {
                clean(&play(*script, &[], is_traced))?;
                clean(&play(*script, &[rule], is_traced)).map(|()| "not needed".to_owned())
            }
        }
    }
}

fn print(outcome: &Outcome) {
    outcome.trace.iter().for_each(|line| println!("{line}"));
}

fn clean(outcome: &Outcome) -> Result<(), String> {
    print(outcome);
    outcome.violations.first().map_or(Ok(()), |what| Err(format!("violated while it holds: {what}")))
}

fn missed(outcome: &Outcome) -> Result<String, String> {
    print(outcome);
    outcome.violations.first().cloned().ok_or_else(|| "not missed".to_owned())
}
