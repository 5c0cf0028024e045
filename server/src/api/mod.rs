//! The calls that clients make, a file for each group of them: who asks, one call of the engine, what is shown of it.
//!
//! Here: which operations there are, all of them on this page. Invariant kept here: whoever may not see something is
//! told that there is no such thing.

mod accounts;
mod apps;
mod authorize;
mod browsing;
mod chats;
#[cfg(test)]
mod contract;
mod credentials;
mod drafted;
mod emails;
mod follows;
mod front;
mod groups;
mod instance;
mod letters;
mod limited;
mod links;
mod lists;
mod moderation;
mod notifications;
mod oauth;
mod own_lists;
mod own_page;
mod page;
mod pictures;
mod place;
mod public_page;
mod ranked;
mod reports;
mod search;
mod services;
mod sessions;
mod sign_up;
mod sign_up_page;
mod statuses;
mod table;
mod timelines;
mod written;

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::app::Shared;
use table::operations;

pub use reports::reported_posts;
pub use sign_up::is_reserved as is_reserved_login;

/// All routes.
pub(crate) fn routes(app: Shared) -> Router {
    table().layer(from_fn_with_state(app.clone(), limited::limited)).with_state(app)
}

operations! {
    "Applications and tokens" {
        POST "/api/v1/apps" apps::create, Everybody, ["client_name* redirect_uris[]* scopes website"],
            "Registers an application", 422;
        GET "/api/v1/apps/verify_credentials" apps::verify, Token, [], "Shows the application that a token is of";
        GET "/oauth/authorize" authorize::page, Everybody, ["response_type* client_id* redirect_uri* scope state \
            code_challenge code_challenge_method force_login"],
            "Shows the page on which somebody lets an application in";
        POST "/oauth/authorize" authorize::decide, Everybody, ["response_type* client_id* redirect_uri* scope state \
            code_challenge code_challenge_method form* act* username password"],
            "Takes one of that page's own forms", 303, 403;
        POST "/oauth/token" oauth::token, Client, ["grant_type* client_id client_secret scope code redirect_uri \
            code_verifier username password"], "Gives a token";
        POST "/oauth/revoke" oauth::revoke, Client, ["client_id client_secret token*"], "Ends a token", 403;
        GET "/oauth/userinfo" oauth::user_info, User("profile|read:accounts"), [], "Shows who has logged in";
        GET "/api/tideline/v1/sessions" sessions::all, User("read:accounts"), [], "Shows where one is logged in";
        DELETE "/api/tideline/v1/sessions/{id}" sessions::end, User("write:accounts"), [], "Logs out there";
        GET "/.well-known/oauth-authorization-server" oauth::metadata, Everybody, [], "Tells how tokens are given";
    }
    "Accounts" {
        GET "/api/v1/accounts" accounts::several, Everybody, ["id[]"], "Shows accounts", 422;
        POST "/api/v1/accounts" sign_up::sign_up, Application("write:accounts"),
            ["username* email* password* agreement* locale reason invite_code"], "Signs somebody up", 422;
        POST "/api/v1/emails/confirmations" emails::confirm, Token, ["email"],
            "Sends the letter again that confirms an address, or to another one", 404, 422;
        GET "/api/v1/accounts/verify_credentials" credentials::verify, User("profile|read:accounts"), [],
            "Shows one's own account";
        PATCH "/api/v1/accounts/update_credentials" credentials::update, User("write:accounts"),
            ["display_name note locked bot discoverable hide_collections indexable fields_attributes[][name] \
            fields_attributes[][value] source[privacy] source[sensitive] source[language]"],
            "Changes one's own account";
        GET "/api/v1/accounts/lookup" accounts::lookup, Everybody, ["acct*"], "Shows the account that has a name", 404;
        GET "/api/v1/accounts/search" search::accounts, User("read:accounts"),
            ["q* limit offset following resolve"], "Finds accounts by how their names begin";
        GET "/api/v1/accounts/relationships" follows::relationships, User("read:follows"), ["id[] with_suspended"],
            "Tells how one stands to accounts";
        GET "/api/v1/accounts/{id}" accounts::one, Everybody, [], "Shows an account";
        GET "/api/v1/accounts/{id}/statuses" timelines::of_account, Viewer("read:statuses"),
            [PAGE, "only_media exclude_replies exclude_reblogs pinned tagged order"],
            "Shows an account's statuses", 422;
        GET "/api/v1/accounts/{id}/followers" accounts::followers, Viewer("read:accounts"), [PAGE],
            "Shows who follows an account";
        GET "/api/v1/accounts/{id}/following" accounts::following, Viewer("read:accounts"), [PAGE],
            "Shows whom an account follows";
        GET "/api/v1/accounts/{id}/lists" lists::with_account, User("read:lists"), [],
            "Shows which of one's lists an account is on";
        POST "/api/v1/accounts/{id}/follow" follows::follow, User("write:follows"), ["reblogs notify languages[]"],
            "Follows an account";
        POST "/api/v1/accounts/{id}/unfollow" follows::unfollow, User("write:follows"), [], "Follows it no longer";
        POST "/api/v1/accounts/{id}/remove_from_followers" follows::remove_follower, User("write:follows"), [],
            "Makes an account follow one no longer";
        POST "/api/v1/accounts/{id}/block" follows::block, User("write:blocks"), [], "Blocks an account";
        POST "/api/v1/accounts/{id}/unblock" follows::unblock, User("write:blocks"), [], "Blocks it no longer";
        POST "/api/v1/accounts/{id}/mute" follows::mute, User("write:mutes"), ["notifications duration"],
            "Mutes an account";
        POST "/api/v1/accounts/{id}/unmute" follows::unmute, User("write:mutes"), [], "Mutes it no longer";
        POST "/api/v1/accounts/{id}/note" follows::note, User("write:accounts"), ["comment"],
            "Notes something of an account, for oneself";
        GET "/api/v1/follow_requests" own_lists::follow_requests, User("read:follows"), [PAGE],
            "Shows who waits for one's answer";
        POST "/api/v1/follow_requests/{id}/authorize" follows::authorize, User("write:follows"), [],
            "Lets somebody follow";
        POST "/api/v1/follow_requests/{id}/reject" follows::reject, User("write:follows"), [],
            "Doesn't let somebody follow";
        GET "/api/v1/blocks" own_lists::blocks, User("read:blocks"), [PAGE], "Shows whom one blocks";
        GET "/api/v1/mutes" own_lists::mutes, User("read:mutes"), [PAGE], "Shows whom one mutes";
        GET "/api/v1/preferences" credentials::preferences, User("read:accounts"), [], "Shows what one prefers";
        POST "/api/tideline/v1/accounts" services::create, Service("write:accounts"),
            ["id username display_name note fields_attributes[][name] fields_attributes[][value] locked group \
            created_at bot discoverable hide_collections indexable"],
            "Makes, or changes, the account of one of a service's own users", 422;
    }
    "Statuses" {
        GET "/api/v1/statuses" statuses::several, Viewer("read:statuses"), ["id[]"], "Shows statuses";
        POST "/api/v1/statuses" statuses::create, User("write:statuses"),
            ["status* spoiler_text sensitive visibility language in_reply_to_id quoted_status_id chat"],
            "Posts a status";
        GET "/api/v1/statuses/{id}" statuses::one, Viewer("read:statuses"), [], "Shows a status";
        PUT "/api/v1/statuses/{id}" statuses::edit, User("write:statuses"), ["status spoiler_text sensitive language"],
            "Changes a status";
        DELETE "/api/v1/statuses/{id}" statuses::delete, User("write:statuses"), [],
            "Deletes a status, and gives its text";
        GET "/api/v1/statuses/{id}/source" statuses::source, User("read:statuses"), [],
            "Shows a status as it was written";
        GET "/api/v1/statuses/{id}/history" statuses::history, Viewer("read:statuses"), [],
            "Shows what a status was before";
        GET "/api/v1/statuses/{id}/context" statuses::context, Viewer("read:statuses"), [],
            "Shows what stands around it";
        POST "/api/v1/statuses/{id}/favourite" statuses::favourite, User("write:favourites"), [], "Likes a status";
        POST "/api/v1/statuses/{id}/unfavourite" statuses::unfavourite, User("write:favourites"), [],
            "Likes it no longer";
        POST "/api/v1/statuses/{id}/bookmark" statuses::bookmark, User("write:bookmarks"), [], "Bookmarks a status";
        POST "/api/v1/statuses/{id}/unbookmark" statuses::unbookmark, User("write:bookmarks"), [],
            "Takes the bookmark out";
        POST "/api/v1/statuses/{id}/reblog" statuses::reblog, User("write:statuses"), ["visibility"],
            "Passes a status on";
        POST "/api/v1/statuses/{id}/unreblog" statuses::unreblog, User("write:statuses"), [], "Takes that back";
        POST "/api/v1/statuses/{id}/pin" statuses::pin, User("write:accounts"), [], "Puts a status above one's others";
        POST "/api/v1/statuses/{id}/unpin" statuses::unpin, User("write:accounts"), [], "Takes it down again";
        POST "/api/v1/statuses/{id}/mute" statuses::mute, User("write:mutes"), [],
            "Mutes the conversation that a status is in";
        POST "/api/v1/statuses/{id}/unmute" statuses::unmute, User("write:mutes"), [], "Mutes it no longer";
        GET "/api/v1/statuses/{id}/favourited_by" statuses::favourited_by, Viewer("read:accounts"), [PAGE],
            "Shows who likes a status";
        GET "/api/v1/statuses/{id}/reblogged_by" statuses::reblogged_by, Viewer("read:accounts"), [PAGE],
            "Shows who has passed it on";
        GET "/api/v1/statuses/{id}/quotes" statuses::quotes, User("read:statuses"), [PAGE], "Shows what quotes it";
        GET "/api/v1/bookmarks" own_lists::bookmarks, User("read:bookmarks"), [PAGE], "Shows what one has bookmarked";
        GET "/api/v1/favourites" own_lists::favourites, User("read:favourites"), [PAGE], "Shows what one likes";
    }
    "Timelines" {
        GET "/api/v1/timelines/home" timelines::home, User("read:statuses"), [PAGE, "order"], "Shows home";
        GET "/api/v1/timelines/public" timelines::public, Viewer("read:statuses"), [PAGE, "local remote only_media"],
            "Shows the newest public statuses", 404;
        GET "/api/v1/timelines/tag/{tag}" timelines::tag, Viewer("read:statuses"),
            [PAGE, "any[] all[] none[] local remote only_media"], "Shows statuses with a hashtag";
        GET "/api/v1/timelines/list/{id}" timelines::list, User("read:lists"), [PAGE, "order"],
            "Shows what a list's members post";
        GET "/api/v1/lists" lists::all, User("read:lists"), [], "Shows one's lists";
        POST "/api/v1/lists" lists::create, User("write:lists"), ["title* replies_policy exclusive"], "Makes a list";
        GET "/api/v1/lists/{id}" lists::one, User("read:lists"), [], "Shows a list";
        PUT "/api/v1/lists/{id}" lists::change, User("write:lists"), ["title replies_policy exclusive"],
            "Changes a list";
        DELETE "/api/v1/lists/{id}" lists::remove, User("write:lists"), [], "Removes a list";
        GET "/api/v1/lists/{id}/accounts" lists::members, User("read:lists"), [PAGE], "Shows who is on a list";
        POST "/api/v1/lists/{id}/accounts" lists::add, User("write:lists"), ["account_ids[]*"], "Puts accounts on it";
        DELETE "/api/v1/lists/{id}/accounts" lists::take_off, User("write:lists"), ["account_ids[]*"],
            "Takes accounts off it";
        GET "/api/v2/search" search::search, Viewer("read:search"), ["q* type limit offset following resolve"],
            "Finds accounts and hashtags by how they begin, statuses by their address or, where there is search, words";
    }
    "Notifications" {
        GET "/api/v1/notifications" notifications::all, User("read:notifications"),
            [PAGE, "types[] exclude_types[] account_id"], "Shows what others did";
        POST "/api/v1/notifications/clear" notifications::clear, User("write:notifications"), [], "Removes all of it";
        POST "/api/v1/notifications/dismiss" notifications::dismiss_named, User("write:notifications"), ["id*"],
            "Removes one, the old way";
        GET "/api/v1/notifications/unread_count" notifications::unread_count, User("read:notifications"),
            ["limit types[] exclude_types[] account_id"], "Counts what is unread";
        GET "/api/v1/notifications/{id}" notifications::one, User("read:notifications"), [], "Shows one";
        POST "/api/v1/notifications/{id}/dismiss" notifications::dismiss, User("write:notifications"), [],
            "Removes one";
        GET "/api/v1/markers" notifications::markers, User("read:statuses"), ["timeline[]"],
            "Shows how far one has read";
        POST "/api/v1/markers" notifications::set_markers, User("write:statuses"),
            ["home[last_read_id] notifications[last_read_id]"], "Notes how far one has read";
    }
    "Chats" {
        GET "/api/v1/conversations" chats::all, User("read:statuses"), [PAGE],
            "Shows one's chats, those with the newest messages first";
        DELETE "/api/v1/conversations/{id}" chats::hide, User("write:conversations"), [],
            "Puts a chat aside until somebody writes to it";
        POST "/api/v1/conversations/{id}/read" chats::read, User("write:conversations"), [],
            "Notes that one has read a chat";
        POST "/api/tideline/v1/chats" chats::open, User("write:conversations"), ["account_ids[]"],
            "Opens a chat with these accounts; with one alone there is one";
        GET "/api/tideline/v1/chats/{id}" chats::get, User("read:statuses"), [],
            "Shows a chat";
        GET "/api/tideline/v1/chats/{id}/statuses" chats::messages, User("read:statuses"), [PAGE],
            "Shows the messages of a chat";
        POST "/api/tideline/v1/chats/{id}/leave" chats::leave, User("write:conversations"), [],
            "Leaves a chat: one reads nothing more of it";
    }
    "Groups" {
        POST "/api/tideline/v1/groups" groups::create, User("write:accounts"),
            ["username* display_name note fields_attributes[][name] fields_attributes[][value] locked announcement \
            discoverable hide_collections indexable"],
            "Makes a group, which one owns";
        PATCH "/api/tideline/v1/groups/{id}" groups::update, User("write:accounts"),
            ["display_name note fields_attributes[][name] fields_attributes[][value] locked discoverable \
            hide_collections indexable"],
            "Changes how a group shows, and whether it is private";
        DELETE "/api/tideline/v1/groups/{id}" groups::delete, User("write:accounts"), [],
            "Deletes a group, and all that was posted into it";
        GET "/api/tideline/v1/groups/{id}/staff" groups::staff, Viewer("read:accounts"), [],
            "Shows who is on a group's staff";
        POST "/api/tideline/v1/groups/{id}/roles" groups::give_role, User("write:accounts"), ["account_id* role*"],
            "Puts a member on the staff, or takes it off";
        POST "/api/tideline/v1/groups/{id}/invite" groups::invite, User("write:accounts"), ["account_id*"],
            "Invites an account, which then joins without being asked about";
        POST "/api/tideline/v1/groups/{id}/uninvite" groups::uninvite, User("write:accounts"), ["account_id*"],
            "Takes an invitation back, or refuses one";
        GET "/api/tideline/v1/groups/{id}/requests" groups::requests, User("read:accounts"), [PAGE],
            "Shows who asks to join";
        POST "/api/tideline/v1/groups/{id}/authorize" groups::authorize, User("write:accounts"), ["account_id*"],
            "Lets somebody in who asks to join";
        POST "/api/tideline/v1/groups/{id}/reject" groups::reject, User("write:accounts"), ["account_id*"],
            "Doesn't let somebody in";
        POST "/api/tideline/v1/groups/{id}/remove" groups::remove, User("write:accounts"), ["account_id*"],
            "Turns a member out, who may come again";
        POST "/api/tideline/v1/groups/{id}/ban" groups::ban, User("write:accounts"), ["account_id*"],
            "Turns an account out for good";
        POST "/api/tideline/v1/groups/{id}/unban" groups::unban, User("write:accounts"), ["account_id*"],
            "Lets it come again";
        DELETE "/api/tideline/v1/groups/{id}/statuses/{status_id}" groups::delete_status, User("write:statuses"), [],
            "Takes a status away that a member posted into it";
    }
    "Moderation" {
        POST "/api/v1/reports" reports::create, User("write:reports"),
            ["account_id* status_ids[] comment category rule_ids[] forward"], "Tells moderators of an account";
        GET "/api/tideline/v1/reports" moderation::reports, User("admin:read:reports"),
            ["resolved account_id max_id limit"], "Shows reports, and statuses that were held back";
        POST "/api/tideline/v1/reports/{id}/release" moderation::release, User("admin:write:reports"), [],
            "Shows a status that was held back to whom it is for";
        POST "/api/tideline/v1/reports/{id}/drop" moderation::drop_held, User("admin:write:reports"), [],
            "Deletes a status that was held back";
        POST "/api/tideline/v1/reports/{id}/resolve" moderation::resolve, User("admin:write:reports"), [],
            "Ends a report";
        POST "/api/tideline/v1/statuses/{id}/moderate" moderation::moderate, User("admin:write:reports"),
            ["hidden sensitive"], "Hides a status from all but its author, or its media at first; or shows it again";
        POST "/api/tideline/v1/accounts/{id}/state" moderation::state, User("admin:write:accounts"), ["becomes*"],
            "Suspends an account, limits it, or lifts that";
        GET "/api/tideline/v1/accounts/{id}/limits" moderation::limits, User("admin:read:accounts"), [],
            "Shows how often an account may do what others have to put up with";
        POST "/api/tideline/v1/accounts/{id}/limits" moderation::limit, User("admin:write:accounts"),
            ["posts direct_posts group_posts mentions_of_strangers follows reports followed_accounts"],
            "Gives an account limits of its own";
    }
    "Pages for people" {
        GET "/" front::page, Everybody, [], "Shows what the site is, and how one logs in";
        GET "/@{name}" public_page::account, Everybody, [], "Shows an account, as a guest sees it";
        GET "/@{name}/{id}" public_page::post, Everybody, [], "Shows a status, as a guest sees it";
        GET "/users/{name}" public_page::account, Everybody, [], "Shows an account, by its other address";
        GET "/users/{name}/statuses/{id}" public_page::post, Everybody, [], "Shows a status, by its other address";
        GET "/tags/{tag}" public_page::tag, Everybody, [], "Says where statuses with a hashtag are read";
        GET "/auth/sign_up" sign_up_page::page, Everybody, ["invite_code"],
            "Shows the page on which somebody signs up";
        POST "/auth/sign_up" sign_up_page::sign_up, Everybody,
            ["form* act* username* email* password* agreement* reason invite_code"], "Signs somebody up", 403, 422;
        GET "/auth/account" own_page::page, Everybody, [], "Shows where somebody is logged in, and its address";
        POST "/auth/account" own_page::act, Everybody,
            ["form* act* username password email session"], "Takes one of that page's own forms", 403;
        GET "/auth/password" links::forgotten, Everybody, [], "Asks for the address of who has forgotten a password";
        POST "/auth/password" links::ask_for_password, Everybody, ["form* act email*"], "Sends a link there", 403;
        GET "/auth/reset" links::reset, Everybody, ["token*"], "Shows the page that such a link leads to", 404;
        POST "/auth/reset" links::set_password, Everybody, ["token* act password*"], "Sets another password", 404;
        GET "/auth/confirm" links::confirm, Everybody, ["token*"],
            "Shows the page that a link to confirm leads to", 404;
        POST "/auth/confirm" links::confirmed, Everybody, ["token* act"], "Confirms an address", 403, 404;
    }
    "The site" {
        GET "/api/v1/instance" instance::v1, Everybody, [], "Shows what the site is, the old way";
        GET "/api/v2/instance" instance::v2, Everybody, [], "Shows what the site is";
        GET "/api/v1/instance/rules" instance::rules, Everybody, [], "Shows what holds there";
        GET "/api/v1/instance/peers" instance::nothing, Everybody, [], "Shows other sites that it knows: none";
        GET "/api/v1/instance/translation_languages" instance::no_languages, Everybody, [],
            "Shows which languages are translated: none";
        GET "/api/v1/domain_blocks" instance::nothing_of_ones_own, User("read:blocks"), [],
            "Shows which other sites one blocks: there are none";
        GET "/api/v1/custom_emojis" instance::nothing, Everybody, [], "Shows pictures that stand for words: none";
        GET "/api/v1/announcements" instance::nothing, Everybody, [], "Shows what the site announces: nothing";
        GET "/avatars/original/missing.png" pictures::avatar, Everybody, [], "The picture of who has none";
        GET "/headers/original/missing.png" pictures::header, Everybody, [], "The picture above a page without one";
        GET "/thumbnail.png" pictures::thumbnail, Everybody, [], "The picture of the site";
        GET "/.well-known/nodeinfo" instance::node_info_place, Everybody, [], "Tells where the site describes itself";
        GET "/nodeinfo/2.0" instance::node_info, Everybody, [], "Describes the site, for machines";
    }
}
