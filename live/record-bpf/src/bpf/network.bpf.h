/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets, drops, and polls of network cards. */
#ifndef NETWORK_BPF_H
#define NETWORK_BPF_H

SEC("tp_btf/napi_poll")
int BPF_PROG(napi_poll, struct napi_struct *napi, int work, int budget)
{
	struct napi_poll_event *event = BEGIN(napi_poll);

	if (!event)
		return 0;
	event->work = work;
	event->budget = budget;
	return end(event);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netif_receive_skb, struct sk_buff *skb)
{
	struct netif_receive_skb_event *event = BEGIN(netif_receive_skb);

	if (!event)
		return 0;
	event->len = skb->len;
	return end(event);
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(kfree_skb, struct sk_buff *skb, void *location, u32 reason)
{
	struct kfree_skb_event *event;

	/* Many of these are no drops: a reader would leave them out. */
	if (reason == bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_NOT_SPECIFIED))
		return 0;
	event = BEGIN(kfree_skb);
	if (!event)
		return 0;
	event->reason = reason;
	return end(event);
}

#endif
