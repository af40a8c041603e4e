-- name: addMemory
insert into ops.memories (service, category, observation, confidence, active, created_at, updated_at, fades_at,
                          session_id, seen_by, tier)
values (:service, :category, :observation, :confidence, :active, :now::timestamptz, :now,
        :now::timestamptz + interval '37 days', :session, :session, :tier)
returning id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier,
          confirmed_by;

-- name: strengthenMemory
-- Records that the same observation was made again: its confidence rises by a tenth, unless the same session made it
-- before. A faded memory becomes active again from 0.3 on; one that an operator made inactive stays inactive. Empty when
-- the observation is new.
update ops.memories m
   set confidence = known.sure,
       active = m.active or (m.faded and known.sure >= 0.3),
       faded = m.faded and known.sure < 0.3,
       seen_by = :session,
       updated_at = :now::timestamptz,
       fades_at = :now::timestamptz + interval '37 days'
  from (select id,
               case when seen_by = :session then confidence
                    else least(1, round((confidence + 0.1)::numeric, 3)) end as sure
          from ops.memories
         where service is not distinct from :service
           and category = :category
           and observation = :observation
         order by active desc, id
         limit 1) known
 where m.id = known.id
returning m.id, m.service, m.category, m.observation, m.confidence, m.active, m.created_at, m.updated_at, m.session_id,
          m.tier, m.confirmed_by;

-- name: confirmMemory
-- A person says that what a session noted is true. No row if no session noted one of this id.
update ops.memories
   set confirmed_by = :by, confidence = greatest(confidence, :confidence), active = true, faded = false,
       updated_at = :now::timestamptz, fades_at = :now::timestamptz + interval '37 days'
 where id = :id
   and tier > 0
returning id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier,
          confirmed_by;

-- name: fadeMemories
-- Memories that were not renewed for 30 days lose a tenth of confidence a week. Under 0.3 they become inactive.
with fading as (
  select id, (floor(extract(epoch from :now::timestamptz - fades_at) / 604800) + 1)::integer as weeks
    from ops.memories
   where active
     and fades_at <= :now::timestamptz
)
update ops.memories m
   set confidence = greatest(0, round((m.confidence - 0.1 * f.weeks)::numeric, 3)),
       active = round((m.confidence - 0.1 * f.weeks)::numeric, 3) >= 0.3,
       faded = round((m.confidence - 0.1 * f.weeks)::numeric, 3) < 0.3,
       fades_at = m.fades_at + f.weeks * interval '7 days'
  from fading f
 where m.id = f.id;

-- name: updateMemory
-- Clears `faded` when the memory is made active or is sure enough; a faded one whose text alone changed stays faded. An
-- observation in other words no longer belongs to a check, so the probe leaves it alone. No row if no memory has this
-- id.
update ops.memories
   set observation = :observation, confidence = :confidence::float8, active = :active::boolean,
       check_name = case when observation = :observation then check_name end,
       faded = faded and not :active::boolean and :confidence::float8 < 0.3, updated_at = :now::timestamptz,
       fades_at = :now::timestamptz + interval '37 days'
 where id = :id
returning id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier,
          confirmed_by;

-- name: removeMemory
-- No row if no memory has this id.
delete from ops.memories
 where id = :id
returning id;

-- name: findMemory
-- No row if no memory has this id.
select id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier,
       confirmed_by
  from ops.memories
 where id = :id;

-- name: listMemories
-- Highest confidence first.
select id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier,
       confirmed_by
  from ops.memories
 where (:service::text is null or service = :service)
   and (:category::text is null or category = :category)
 order by confidence desc, id
offset :offset
 limit :limit;

-- name: pageMemories
-- Highest confidence first, those after the memory with this confidence and id.
select id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier,
       confirmed_by
  from ops.memories
 where confidence <= :confidence
   and (confidence < :confidence or id > :id)
   and (:service::text is null or service = :service)
   and (:category::text is null or category = :category)
 order by confidence desc, id
 limit :limit;

-- name: countMemories
-- Counts no further than the limit.
select count(*) as count
  from (select
          from ops.memories
         where (:service::text is null or service = :service)
           and (:category::text is null or category = :category)
         limit :limit) found;

-- name: listActiveMemories
-- In the order of the prompt: first the operators' memories, then the sessions', each by confidence.
select id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier,
       confirmed_by
  from ops.memories
 where active
   and (:service::text is null or service = :service)
   and (:category::text is null or category = :category)
 order by tier > 0, confidence desc, id
 limit :limit;

-- name: trimMemories
-- Keeps the memory just added and the best others of agents. Those of operators, confirmed ones and check times don't
-- count.
delete from ops.memories
 where id in (select id
                from ops.memories
               where tier > 0
                 and check_name is null
                 and confirmed_by is null
                 and id <> :added
               order by active desc, confidence desc, updated_at desc, id desc
              offset :kept);

-- name: noteCheckTime
-- Each check has one memory of its usual time. The same time again adds a tenth of confidence. Another time takes a
-- tenth, and replaces the observation where that would be less sure than a new memory.
insert into ops.memories as m (service, check_name, category, observation, confidence, active, created_at, updated_at,
                               fades_at, session_id, tier)
values (:service, :check, 'timing', :observation, :confidence, true, :now::timestamptz, :now,
        :now::timestamptz + interval '37 days', :session, :tier)
on conflict (service, check_name) do update
   set observation = case when round((m.confidence - 0.1)::numeric, 3) >= excluded.confidence then m.observation
                          else excluded.observation end,
       confidence = case when m.observation = excluded.observation then least(1, round((m.confidence + 0.1)::numeric, 3))
                         else greatest(excluded.confidence, round((m.confidence - 0.1)::numeric, 3)) end,
       active = m.active or (m.faded and (m.observation <> excluded.observation or m.confidence >= 0.2)),
       faded = m.faded and m.observation = excluded.observation and m.confidence < 0.2,
       updated_at = excluded.updated_at,
       fades_at = excluded.fades_at;
