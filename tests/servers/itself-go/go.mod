module andiron/tests/servers/itself-go

go 1.25.0

require andiron/host-abi/bindings/go v0.0.0

require github.com/ebitengine/purego v0.11.3 // indirect

replace andiron/host-abi/bindings/go => ../../../host-abi/bindings/go
