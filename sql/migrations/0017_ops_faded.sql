alter table ops.memories
  add column faded boolean not null default false;
comment on column ops.memories.faded is 'It rests because it has faded: seen again it becomes active. One that people have put to rest does not.';
update ops.memories set faded = true where not active and confidence < 0.3;
