// The one subscriber of the callback API.
#pragma once

#include "simgpu/cupti/headers.h"
#include "simgpu/driver/observe/observer.h"

namespace simgpu::cupti {

bool call_is_heard(bool runtime, uint32_t number);  // the subscriber asked for that call
void callback_call(const CallNotice& notice, uint32_t number, bool entering);
void callback_sync(const SyncNotice& notice);
void callback_resource(const ResourceNotice& notice);
uint32_t callback_looks();  // what the subscriber's callbacks need to see
void forget_subscriber();
bool is_subscriber(CUpti_SubscriberHandle handle);

}  // namespace simgpu::cupti
