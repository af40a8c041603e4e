-- Without these, removing a session reads each of the tables that name it from end to end.
create index memories_by_session on ops.memories (session_id);
create index actions_by_session on ops.actions (session_id);
create index alerts_by_session on ops.alerts (session_id);

alter table ops.memories
  add column check_name text collate "C";
comment on column ops.memories.check_name is 'The check whose usual time it tells: one memory each, which the probe updates. Null for all others.';
create unique index memories_by_check on ops.memories (service, check_name);
-- The probe left one for each time that it saw, which contradict each other. It learns them anew.
delete from ops.memories
 where tier > 0
   and category = 'timing'
   and observation ~ ' usually answers within (over )?[0-9]+ ms$';
