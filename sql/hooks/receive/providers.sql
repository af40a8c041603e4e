-- name: listProviders
-- What the receivers check of every provider, and whether an alarm is set.
select name, trust_mode, scheme, scheme_row, methods, answer, enabled, token_hash, retired_hash as previous_hash,
       signing_secret, retired_signing_secret as previous_signing_secret,
       retired_until as previous_until, rotated_at,
       expected_interval_s is not null or rejection_burst is not null as watched
  from hooks.providers
 order by name;

-- name: listProvidersWithActivity
-- Every provider with its events and rejected deliveries since :recent_since and its last event, and with what its
-- alarms check: when it delivered last, and the wrong secrets since :rejected_since. Counted from the minutes, as
-- listStats does: retention of events changes no count. Where it removed the last event, its minute stands for it.
select p.name, p.family, p.trust_mode, p.scheme, p.scheme_row, p.methods, p.answer, p.enabled, p.token_hash, p.signing_secret,
       p.retired_until as previous_until, p.rotated_at, p.last_secret, p.last_secret_at,
       p.expected_interval_s, p.rejection_burst, p.watched_since,
       coalesce(a.events, 0)::integer as recent_count,
       coalesce(r.rejected, 0)::integer as recent_rejections,
       coalesce(e.received_at, h.minute) as last_event_at,
       coalesce(e.received_at, h.minute + interval '1 minute') as heard_at,
       coalesce(r.wrong_secret, 0)::integer as rejected_count
  from hooks.providers p
  left join lateral (
         select sum(events) as events from hooks.activity where provider = p.name and minute >= :recent_since
       ) a on true
  left join lateral (
         -- Only events_of_provider is in this order. By the highest id alone, PostgreSQL reads the whole log for a
         -- provider that has been quiet.
         select received_at from hooks.events
          where provider_key <= hooks.name_key(p.name)
            and (provider_key, id) > (hooks.name_key(p.name), (select pruned_through from hooks.settings))
          order by provider_key desc, id desc
          limit 1
       ) e on true
  left join lateral (
         select minute from hooks.activity where provider = p.name
          order by minute desc limit 1
       ) h on true
  left join lateral (
         select sum(rejected) as rejected, sum(wrong_secret) filter (where minute > :rejected_since) as wrong_secret
           from hooks.rejection_minutes where provider = p.name and minute >= :recent_since
       ) r on true
 order by p.name like '%:%', p.name;

-- name: addProvider
-- A new generic provider; empty when the name is taken.
with added as (
  insert into hooks.providers (name, family, trust_mode, scheme, scheme_row, methods, answer, enabled, token_hash,
                               signing_secret)
  values (:name, 'webhook', :trust_mode, :scheme, :scheme_row, :methods, :answer, :enabled, :token_hash,
          :signing_secret)
  on conflict (name) do nothing
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from added
)
select added.name from added left join notified on true;

-- name: addQueueProviders
-- Adds the providers of channels, enabled. A provider that exists stays as an operator set it.
with added as (
  insert into hooks.providers (name, family, trust_mode, enabled)
  select name, 'queue', 'queue', true
    from jsonb_array_elements_text(:names::jsonb) as name
  on conflict (name) do nothing
  returning name
)
select pg_notify('hooks_config', '') from added;

-- name: enableProvider
-- No row if no provider has this name. The alarm "silent" counts from the time a provider was enabled.
with changed as (
  update hooks.providers
     set enabled = :enabled,
         watched_since = case when :enabled and not enabled then :now else watched_since end
   where name = :name
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join notified on true;

-- name: rotateSecret
-- Replaces a provider's token or its encrypted signing secret; the previous one, if there is one, is accepted until
-- :until (null: no longer). Empty when no provider of that name has that trust mode, or when its last rotation is not
-- the one in :seen ('' for never; null asks no question).
with changed as (
  update hooks.providers
     set token_hash = :token_hash, retired_hash = token_hash,
         signing_secret = :signing_secret, retired_signing_secret = signing_secret,
         rotated_at = :now,
         retired_until = case when coalesce(token_hash, signing_secret) is not null then :until::timestamptz end,
         last_secret = case when coalesce(token_hash, signing_secret) is not null and last_secret = 'current'
                            then 'previous' end
   where name = :name and trust_mode = :trust_mode
     and (:seen::text is null or rotated_at is not distinct from nullif(:seen, '')::timestamptz)
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join notified on true;

-- name: verifyProvider
-- Gives an open provider a token, or a scheme with its secret. Empty when no provider of that name is open.
with changed as (
  update hooks.providers
     set trust_mode = :trust_mode, scheme = :scheme, scheme_row = :scheme_row, token_hash = :token_hash,
         signing_secret = :signing_secret
   where name = :name and trust_mode = 'open'
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join notified on true;

-- name: saveSecretUses
-- Which secret was used last. A use from before the rotation that the row knows says nothing; a change of a
-- configured secret is no rotation. All writers lock in one order.
with used as (
  select provider, secret, at, rotated_at
    from jsonb_to_recordset(:uses::jsonb) as u(provider text, secret text, at timestamptz, rotated_at timestamptz)
), known as materialized (
  select p.name
    from hooks.providers p
   where p.name in (select provider from used)
   order by p.name
     for no key update
)
update hooks.providers p
   set last_secret = u.secret, last_secret_at = u.at
  from used u
  join known k on k.name = u.provider
 where p.name = k.name
   and p.rotated_at is not distinct from u.rotated_at
   and (p.last_secret_at is null or p.last_secret_at < u.at);

-- name: setAlarms
-- Sets the alarms that :alarms has; null turns one off. The alarm "silent" counts from the time its interval was set.
-- No row if no provider has this name.
with given as (
  select alarms, (alarms->>'expected_interval')::integer as expected, (alarms->>'rejection_burst')::integer as burst
    from (select :alarms::jsonb as alarms) a
), changed as (
  update hooks.providers
     set expected_interval_s = case when alarms ? 'expected_interval' then expected else expected_interval_s end,
         rejection_burst = case when alarms ? 'rejection_burst' then burst else rejection_burst end,
         watched_since = case when alarms ? 'expected_interval' and expected_interval_s is distinct from expected
                              then :now else watched_since end
    from given
   where name = :name
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join notified on true;

-- name: setTopics
-- Sets the topics whose events a generic provider accepts. No row if none has this name, or if it has no scheme.
with changed as (
  update hooks.providers
     set scheme_row = coalesce(scheme_row, '{}')
                      || jsonb_build_object('expected', jsonb_build_object('topics', :topics::jsonb))
   where name = :name and name like 'generic:%' and scheme is not null
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join notified on true;

-- name: setAnswers
-- Sets the methods and the answer of a generic receiver that :changes has; null stands for the usual ones. No row if no
-- generic provider has this name.
with given as (
  select :changes::jsonb as changes
), changed as (
  update hooks.providers
     set methods = case when changes ? 'methods' then nullif(changes -> 'methods', 'null') else methods end,
         answer = case when changes ? 'answer' then nullif(changes -> 'answer', 'null') else answer end
    from given
   where name = :name and name like 'generic:%'
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join notified on true;

-- name: removeProvider
-- Removes a generic or queue provider and keeps its events. No row if no provider has this name, or if it is one of the
-- three that always exist, whose names have no prefix.
with removed as (
  delete from hooks.providers where name = :name and name like '%:%' returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from removed
)
select removed.name from removed left join notified on true;
