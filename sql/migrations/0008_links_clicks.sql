create table links.click_writers (
  writer uuid           primary key,
  batch  bigint         not null,
  at     timestamptz(3) not null
);
comment on table links.click_writers is 'The last batch of clicks of each process: one whose answer got lost is sent again, and counts once.';
