-- What the planner knew of the columns that 0014 changed went with the change, and a server's autovacuum looks again
-- only when a tenth of the rows is new. Empty tables have nothing to know: they would be taken for empty for ever after.
do $$
declare changed regclass;
begin
  foreach changed in array array[
    'hooks.events', 'hooks.activity', 'hooks.endpoints', 'hooks.forwarders', 'hooks.providers', 'hooks.refusals',
    'hooks.rejection_totals', 'hooks.rejections', 'links.clicks', 'ops.actions', 'ops.alerts', 'ops.check_states',
    'ops.events', 'ops.memories'
  ]::regclass[] loop
    if pg_relation_size(changed) > 0 then
      execute format('analyze %s', changed);
    end if;
  end loop;
end
$$;
