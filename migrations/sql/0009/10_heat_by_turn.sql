-- Heat by the turns of the user: what the clock counts is counted where turns are recorded, so that no sweep looks for it.
alter table memoryos.conversation add column user_turns bigint not null default 0;
comment on column memoryos.conversation.user_turns is
    'Turns of the user recorded since heat can be counted in them; only its growth is read.';

alter table memoryos.scope add column turn_ticks bigint;
comment on column memoryos.scope.turn_ticks is
    'User turns that heat_ticks has counted already, under ema_tick by turn; null before the first count.';
comment on column memoryos.scope.heat_ticks is 'The clock of heat under ema_tick: retrievals, or turns of the user.';
