-- name: findSummary
-- The newest summary. Empty before the first one.
select id, ended_at, summary
  from ops.sessions
 where summary is not null
   and ended_at is not null
 order by started_at desc, id desc
 limit 1;

-- name: listDays
-- Sessions, their cost with that of briefs, and events by day in UTC. A day without any has no row.
with sessions as (
  select (started_at at time zone 'UTC')::date as day, count(*) as sessions, coalesce(sum(cost_usd), 0) as cost_usd
    from ops.sessions
   where started_at >= :since
   group by 1
), events as (
  select (created_at at time zone 'UTC')::date as day, count(*) as events
    from ops.events
   where created_at >= :since
   group by 1
), briefs as (
  select day, cost_usd
    from ops.brief_costs
   where day >= (:since::timestamptz at time zone 'UTC')::date
)
select to_char(day, 'YYYY-MM-DD') as day, coalesce(s.sessions, 0) as sessions,
       coalesce(s.cost_usd, 0) + coalesce(b.cost_usd, 0) as cost_usd, coalesce(e.events, 0) as events
  from sessions s
  full join events e using (day)
  full join briefs b using (day)
 order by 1
 limit :limit;
