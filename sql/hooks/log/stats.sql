-- name: listStats
-- Events and rejected deliveries per provider and hour since a time, oldest hour first. Hours with neither are left out.
select provider, hour, sum(events)::integer as events, sum(rejections)::integer as rejections
  from (select provider, date_trunc('hour', minute) as hour, events, 0 as rejections
          from hooks.activity
         where minute >= :since
         union all
        select provider, date_trunc('hour', minute), 0, rejected
          from hooks.rejection_minutes
         where minute >= :since) counted
 group by provider, hour
 order by hour, provider;
