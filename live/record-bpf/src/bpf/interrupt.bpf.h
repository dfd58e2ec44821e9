/* SPDX-License-Identifier: GPL-2.0-only */
/* Interrupts, softirqs, what one CPU sends to another, and idling. */
#ifndef INTERRUPT_BPF_H
#define INTERRUPT_BPF_H

/* An event with one number, which is the first argument of its tracepoint. */
#define NUMBER(name, field, before, after) \
SEC("tp_btf/" #name) \
int BPF_PROG(name, u32 number) \
{ \
	struct name##_event *event; \
\
	before; \
	event = BEGIN(name); \
	if (event) { \
		event->field = number; \
		end(event); \
	} \
	after; \
	return 0; \
}

/* One that is served, from its entry to its exit. */
#define SERVED(name, field, count) \
NUMBER(name##_entry, field, ENTER(count), ) \
NUMBER(name##_exit, field, , LEAVE(count))

SERVED(irq_handler, irq, hardirqs)
SERVED(softirq, vec, softirqs)
SERVED(local_timer, vector, hardirqs)
SERVED(reschedule, vector, hardirqs)
SERVED(call_function, vector, hardirqs)
SERVED(call_function_single, vector, hardirqs)
NUMBER(cpu_idle, state, , )

/* One that is not recorded, but wakes tasks. */
#define COUNTED(name) \
SEC("tp_btf/" #name "_entry") \
int BPF_PROG(name##_entry) \
{ \
	ENTER(hardirqs); \
	return 0; \
} \
SEC("tp_btf/" #name "_exit") \
int BPF_PROG(name##_exit) \
{ \
	LEAVE(hardirqs); \
	return 0; \
}

/* Of x86, and of arm64. */
COUNTED(irq_work)
COUNTED(ipi)

SEC("tp_btf/ipi_send_cpu")
int BPF_PROG(ipi_send_cpu, u32 cpu, unsigned long callsite, void *callback)
{
	struct ipi_send_cpu_event *event = BEGIN(ipi_send_cpu);

	if (!event)
		return 0;
	event->cpu = cpu;
	event->callback = callback != NULL;
	return end(event);
}

#endif
