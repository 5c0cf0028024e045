//! Rules of the functions, each as a change of their text that takes it out.

/// Name, what stands in the code (exactly once), what takes its place.
const IN_LUA: &[(&str, &str, &str)] = &[
    (
        "only_fill",
        "local length = call('RPUSHX', home, record)",
        "if call('EXISTS', home) == 0 then call('RPUSH', home, '\\0\\0\\0\\0\\0\\0\\0\\0' .. WHOLE) end\n    local length = call('RPUSH', home, record)",
    ),
    (
        "tidy_scan",
        "watermark = watermark_of(redis.call('LRANGE', key, 0, -1))",
        "watermark = string.sub(redis.call('LINDEX', key, -1), 1, 8) .. string.sub(redis.call('LINDEX', key, 0), 9)",
    ),
    (
        "cut_floor",
        "  redis.call('LTRIM', key, place, -1)\n",
        "  local head = redis.call('LINDEX', key, 0)\n  redis.call('LTRIM', key, place, -1)\n  redis.call('LSET', key, 0, head)\n",
    ),
    ("cut_anywhere", "    if not watermark then return nil end\n", "    if true then return end\n"),
    (
        "tidy_nonce",
        "string.sub(highest, 1, 8) .. string.sub(record, 9)",
        "string.sub(highest, 1, 8) .. WHOLE",
    ),
    (
        "finish_arrived",
        "    if not is_watermark(record) then\n",
        "    if is_watermark(record) then\n      late[#late + 1] = string.sub(record, 1, 8) .. WHOLE\n    else\n",
    ),
    ("edge_counted", "  if counts then tell_followers(keys[#keys], total) end\n  local done", "  local done"),
    ("joined_counted", "  redis.call('HSET', keys[1], 'nr', total + new)\n", ""),
    ("removal_counted", "  if args[3] == '1' then tell_followers(keys[#keys], total) end\n", ""),
    ("finish_head", "if order_of(arrived[1]) > order_of(floor) then", "if false then"),
    (
        "finish_cut",
        "local fit, floor, pulled = fit_of(args, 3), args[2], 6",
        "local fit, floor, pulled = fit_of(args, 3), '\\0\\0\\0\\0\\0\\0\\0\\0', 6",
    ),
    (
        "finish_nonce",
        "if #arrived == 0 or string.sub(arrived[1], 9) ~= args[1] then",
        "if #arrived == 0 then",
    ),
    (
        "marks_stamp_settle",
        "  redis.call('HSET', keys[1], 't', args[3])\n  if #append > 0 then",
        "  if #append > 0 then",
    ),
    (
        "marks_stamp_follow",
        "redis.call('HSET', keys[1], 'g', args[2], 't', args[3])",
        "redis.call('HSET', keys[1], 'g', args[2])",
    ),
    (
        "graph_stamp_follow",
        "redis.call('HSET', keys[1], 'g', args[2], 't', args[3])",
        "redis.call('HSET', keys[1], 't', args[3])",
    ),
    (
        "mark_anew",
        "redis.call('HSET', head .. 'm' .. members[i], author, mark)",
        "redis.call('HSETNX', head .. 'm' .. members[i], author, mark)",
    ),
    ("following_checked", "if holds(head, '@following:' .. members[i], author) then", "if true then"),
    ("still_promoting", "if before ~= args[1] or", "if (args[3] ~= 'x' and before ~= args[1]) or"),
    (
        "mark_at_once",
        "    if args[i + 1] ~= '' then redis.call('HSET', keys[2], args[i], args[i + 1]) end\n",
        "",
    ),
    ("compare_and_set", "if stamp ~= args[1] then return { 'stamp', stamp } end", ""),
    ("ties_compared", "if (record[2] or '') ~= args[1] then return { 'stamp' } end", ""),
    (
        "ties_renewed",
        "  redis.call('HSET', keys[1], 'i', args[2])\n  if not changes then return { 'ok', 0 } end",
        "  if not changes then return { 'ok', 0 } end\n  redis.call('HSET', keys[1], 'i', args[2])",
    ),
    ("repost_compared", "    if (record[4] or '') ~= args[18] then return { 'stamp' } end\n", ""),
    (
        "undo_compared",
        "    if (redis.call('HGET', keys[3], 'i') or '') ~= args[7] then return { 'stamp' } end\n",
        "",
    ),
    (
        "repost_renews",
        "'u56', 8, new) end\n    redis.call('HSET', keys[2], 'i', args[19])\n",
        "'u56', 8, new) end\n",
    ),
    (
        "again_renews",
        "      redis.call('HSET', keys[2], 'i', args[19])\n      return { 'again', id }",
        "      return { 'again', id }",
    ),
    ("undo_renews", "    if original ~= '' then redis.call('HSET', keys[3], 'i', args[8]) end\n", ""),
    ("claim_compared", "if now ~= args[1] then return { 'taken', now } end", ""),
    (
        "wanted_counts",
        "if not names_claim(seen[2], args[1]) then return { 'free' } end",
        "do return { 'free' } end",
    ),
    (
        "patience_in_slot",
        "return node_ms() - (tonumber(began or '') or 0) >= tonumber(patience)",
        "return true",
    ),
    (
        "own_attempt",
        "if seen[2] ~= args[1] then return { 'gone' } end",
        "if not seen[2] then return { 'gone' } end",
    ),
    ("settled_again", "if seen[1] == args[1] then return { 'ok' } end", ""),
    (
        "own_end",
        "if (seen[1] or '') ~= args[1] or not is_over(seen[2], args[2]) then",
        "if not is_over(seen[2], args[2]) then",
    ),
    ("one_attempt", "if seen[2] and not is_over(seen[3], args[2]) then return { 'busy' } end", ""),
    ("names_compared", "if (seen[1] or '') ~= args[3] then return { 'stamp' } end", ""),
    (
        "password_compared",
        "  if seen ~= args[1] then return { 'stamp' } end\n  redis.call('HSET', keys[2], 'v'",
        "  redis.call('HSET', keys[2], 'v'",
    ),
    ("given_up_compared", "if redis.call('GET', keys[1]) ~= args[1] then return 0 end", ""),
    ("list_of_nothing", "    if not is_there then return { 'gone' } end\n", ""),
    ("list_counted", "  if is_there then write_count(post, args[2], members) end\n", ""),
    ("greater", "if option == '' then return redis.call('ZADD'", "if true then return redis.call('ZADD'"),
    ("remove_below", "tonumber(score) < tonumber(below)", "true"),
    ("own_stamp", "return { 'not', take_stamps(keys[3], 1) }", "return { 'not', node_ms() + 60 }"),
    (
        "mark_compared",
        "if redis.call('HGET', keys[2], author) ~= mark then",
        "if not redis.call('HGET', keys[2], author) then",
    ),
    ("busy", "if nonce ~= WHOLE then return { 'busy', nonce } end", ""),
    ("edge_in_settle", "if not score or tonumber(score) < tonumber(args[4]) then return { 'edge' } end", ""),
    ("reach", "if order_of(args[8]) > floor or #append", "if #append"),
    ("join_unblocked", "  if redis.pcall('ZSCORE', keys[5], account) then return apart end\n", ""),
    (
        "join_unasked",
        "if redis.call('HGET', keys[6], account) or redis.call('HGET', keys[7], account) then",
        "if false then",
    ),
    (
        "frozen_set",
        "if bits[1] ~= LOCAL or bits[2] == 1",
        "if (bits[1] ~= LOCAL and bits[1] ~= 71) or bits[2] == 1",
    ),
    (
        "split_checked",
        "if bits[1] ~= LOCAL or bits[2] == 1 or (depth > 0 and bits[3] == 0) then",
        "if bits[1] ~= LOCAL then",
    ),
    ("guard", "if guard ~= '' and redis.call('GET', keys[#keys]) ~= guard then return { 'guard' } end", ""),
    ("touch_first", "if redis.call('EXISTS', head .. id) == 0 then", "if true then"),
    (
        "post_first",
        "  redis.call('SET', args[1] .. id, post)\n  local length = redis.call('RPUSH', keys[3], id)\n",
        "  local length = redis.call('RPUSH', keys[3], id)\n  redis.call('SET', args[1] .. id, post)\n",
    ),
    ("token", "if before then return { 'again', before } end", ""),
    ("id_above_last", "if ms <= last_ms then", "if ms == last_ms then"),
    ("stamp_above_last", "stamp = math.max(stamp + 1, node_ms())", "stamp = node_ms()"),
];

/// Names of all rules that can be taken out: those of the functions, then those that the engine asks for.
pub(super) fn all() -> Vec<&'static str> {
    IN_LUA.iter().map(|(name, ..)| *name).chain(IN_RUST.iter().copied()).collect()
}

/// Rules that the engine, or the simulation itself, asks for by `rules::holds`.
const IN_RUST: &[&str] = &[
    "absence_renews",
    "asked_before_given_up",
    "author_delivered",
    "author_shown",
    "begun_once",
    "block_read_again",
    "cache_age",
    "draw_anew",
    "edge_first",
    "ended_first",
    "fence",
    "fence_checkpoint",
    "fence_claim",
    "fence_copied",
    "fence_copies",
    "fence_edge",
    "fence_ended",
    "fence_follow",
    "fence_frozen",
    "fence_promotion",
    "fence_repeated",
    "fence_settled",
    "fence_strike",
    "fence_taken",
    "fence_unmark",
    "fill_begins_first",
    "flight_age",
    "highest_cut",
    "known_first",
    "last_attempt",
    "leaf_still",
    "list_asks_post",
    "list_looked_again",
    "list_owner_again",
    "listed_once_named",
    "mark_before_stamp",
    "marks_first",
    "mentioned_now",
    "mode_looked_at",
    "newer_request",
    "nothing_renews",
    "one_life",
    "own_change",
    "own_uncached",
    "patience",
    "record_after_walk",
    "refer_again",
    "renewed_by_both",
    "request_first",
    "reread",
    "said_by_both",
    "same_follow",
    "same_request",
    "stamps_again",
    "stamps_compared",
    "stamps_first",
    "state_of_stamps",
    "tie_again",
    "ties_carried_on",
    "ties_of_stamp",
    "ties_remembered",
    "twin_looked_at",
    "wanted_again",
    "watermarks",
];

/// Bounds that are small in the simulation.
const SMALL: &[(&str, &str)] =
    &[("local GROUP = 16", "local GROUP = 3"), ("local OUTBOX_SLACK = 512", "local OUTBOX_SLACK = 2")];

/// The functions' code with small bounds and without these rules.
pub(super) fn patched(code: &str, rules_out: &[&'static str]) -> String {
    let changes =
        IN_LUA.iter().filter(|(name, ..)| rules_out.contains(name)).map(|(_, from, to)| (*from, *to));
    changes.chain(SMALL.iter().copied()).fold(code.to_owned(), |code, (from, to)| {
        assert_eq!(code.matches(from).count(), 1, "`{from}` must stand in the functions exactly once");
        code.replace(from, to)
    })
}
